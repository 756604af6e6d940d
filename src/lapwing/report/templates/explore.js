"use strict";
// A chosen state: distances from it, states as a scatter, and where eigenoptions lead.
const explored = { run: 0, state: 0, component: 1, sign: 1, axes: [1, 2, -1], colour: "scaled" };
const element = id => document.getElementById(id);
const current = () => DATA.runs[explored.run];
const hasPicture = run => Boolean(run.cells);
const indexes = new WeakMap();

// Which state each pixel of the picture is, -1 at walls.
function indexOf(run) {
  if (!indexes.has(run)) {
    const index = new Int32Array(run.rows * run.columns).fill(-1);
    run.cells.forEach((cell, i) => { index[cell] = i; });
    indexes.set(run, index);
  }
  return indexes.get(run);
}

function stateAt(run, row, column) {
  return row < 0 || column < 0 || row >= run.rows || column >= run.columns ? -1 : indexOf(run)[row * run.columns + column];
}

// The norm of differences from one state, in the plain components or in psi.
function representationDistances(run, from, scaled) {
  const columns = scaled ? run.psi : run.values;
  return run.values[0].map((_, i) => {
    let sum = 0;
    for (const column of columns) {
      if (column[i] === null || column[from] === null) return null;
      sum += (column[i] - column[from]) ** 2;
    }
    return Math.sqrt(sum);
  });
}

// Fewest steps: breadth first between listed states; elsewhere a step goes along both axes at once.
function trueSteps(run, from) {
  if (!hasPicture(run)) return null;
  if (run.reach) {
    const [row, column] = place(run, from);
    return run.cells.map((_, i) => {
      const [r, c] = place(run, i);
      return Math.max(Math.ceil(Math.abs(r - row) / run.reach[0] - 1e-9), Math.ceil(Math.abs(c - column) / run.reach[1] - 1e-9));
    });
  }
  const steps = new Array(run.count).fill(null), queue = [from];
  steps[from] = 0;
  for (let head = 0; head < queue.length; head++) {
    for (const next of run.moves[queue[head]]) {
      if (steps[next] === null) { steps[next] = steps[queue[head]] + 1; queue.push(next); }
    }
  }
  return steps;
}

function measure(source) {
  const run = current();
  return source === "steps" ? trueSteps(run, explored.state) : representationDistances(run, explored.state, source === "scaled");
}

const largest = values => values.reduce((top, value) => (value !== null && value > top ? value : top), 0);

BUILDERS.distance = figure => {
  const run = current(), source = figure.dataset.source;
  if (!hasPicture(run) || (source === "scaled" && !run.psi.length)) return null;
  const values = measure(source);
  const made = mapFigure(run, values, { scale: SEQUENTIAL, low: 0, high: largest(values) || 1, chosen: explored.state, format: source === "steps" ? "d" : ".3f" });
  made.click = point => choose(stateAt(current(), point.y, point.x));
  return made;
};

function colouring(run) {
  if (explored.colour === "visits") return [run.visits, "visits", "Cividis", false];
  if (explored.colour.startsWith("u")) {
    const k = Number(explored.colour.slice(1));
    return [run.values[k], `u<sub>${k + 1}</sub>`, DIVERGING, run.bounds[k]];
  }
  const titles = { plain: "distance", scaled: "scaled<br>distance", steps: "steps" };
  return [measure(explored.colour), titles[explored.colour], SEQUENTIAL, false];
}

BUILDERS.scatter = figure => {
  const run = current(), [x, y, z] = explored.axes, deep = z >= 0;
  const [colour, title, scale, bound] = colouring(run);
  const type = deep ? "scatter3d" : run.count > 4000 ? "scattergl" : "scatter";
  const label = k => ({ text: `u<sub>${k + 1}</sub>` });
  const at = i => [x, y, z].map(k => (k >= 0 ? run.values[k][i] : 0));
  const marker = { size: deep ? 3.5 : run.count > 500 ? 6 : 9, color: colour, colorscale: scale, showscale: true, line: { width: deep ? 0 : 0.5, color: "rgba(120,120,120,.6)" }, colorbar: { title: { text: title }, thickness: 12, outlinewidth: 0 } };
  if (bound) Object.assign(marker, { cmin: -bound, cmax: bound });
  const [px, py, pz] = at(explored.state);
  const text = run.values[0].map((_, i) => `state ${i}` + (hasPicture(run) ? `, row ${place(run, i)[0]}, column ${place(run, i)[1]}` : ""));
  const traces = [
    { type, x: run.values[x], y: run.values[y], mode: "markers", marker, text, hovertemplate: "%{text}<extra></extra>" },
    { type, x: [px], y: [py], mode: "markers", marker: { size: deep ? 7 : 15, symbol: "circle-open", color: MARK, line: { width: 3, color: MARK } }, hoverinfo: "skip" },
  ];
  if (deep) { traces[0].z = run.values[z]; traces[1].z = [pz]; }
  const layout = deep
    ? { margin: { l: 0, r: 0, t: 0, b: 0 }, showlegend: false, dragmode: "orbit", uirevision: "keep", scene: { camera: { eye: { x: 1.3, y: 1.3, z: 0.8 } }, xaxis: { title: label(x) }, yaxis: { title: label(y) }, zaxis: { title: label(z) } } }
    : { margin: { l: 56, r: 10, t: 10, b: 46 }, showlegend: false, hovermode: "closest", xaxis: { title: label(x), fixedrange: true }, yaxis: { title: label(y), fixedrange: true } };
  return { data: traces, layout, click: point => { if (point.curveNumber === 0) choose(point.pointNumber); } };
};

function pathFrom(nexts, start) {
  const path = [start];
  for (let next = nexts[start]; next >= 0 && next !== path[path.length - 1] && path.length <= nexts.length; next = nexts[next]) path.push(next);
  return path;
}

// Clockwise from up, in degrees.
function angleOf(run, from, to) {
  const [row, column] = place(run, from), [nextRow, nextColumn] = place(run, to);
  return (Math.atan2(nextColumn - column, row - nextRow) * 180) / Math.PI;
}

BUILDERS.option = figure => {
  const run = current();
  if (!hasPicture(run) || !run[figure.dataset.source] || explored.component < 1) return null;
  const values = run[figure.dataset.source][explored.component].map(value => (value === null ? null : explored.sign * value));
  const bound = run.bounds[explored.component], nexts = run.options[figure.dataset.source][explored.component - 1][explored.sign > 0 ? 0 : 1];
  const made = mapFigure(run, values, { scale: DIVERGING, low: -bound, high: bound, chosen: explored.state });
  const size = Math.max(2.5, Math.min(22, (0.62 * figure.clientWidth) / run.columns));
  const states = run.cells.map((_, i) => i), going = states.filter(i => nexts[i] >= 0 && nexts[i] !== i), resting = states.filter(i => nexts[i] === i);
  const points = states => ({ type: "scatter", x: states.map(i => place(run, i)[1]), y: states.map(i => place(run, i)[0]), hoverinfo: "skip" });
  const path = pathFrom(nexts, explored.state);
  made.data.splice(made.data.length - 2, 0,
    { ...points(going), mode: "markers", marker: { symbol: "arrow", angle: going.map(i => angleOf(run, i, nexts[i])), size, color: "#14161b", opacity: 0.75 } },
    { ...points(path), mode: "lines", line: { color: MARK, width: 3 } },
    { ...points(resting), mode: "markers", marker: { symbol: "star", size: Math.max(13, 1.2 * size), color: "#ffd21f", line: { width: 1.5, color: "#14161b" } } });
  made.click = point => choose(stateAt(current(), point.y, point.x));
  const ends = resting.length === 1 ? "1 state" : `${resting.length} states`;
  element(`option-facts-${figure.dataset.source}`).textContent = `ends in ${ends}; from state ${explored.state} after ${path.length - 1} step${path.length === 2 ? "" : "s"}, in state ${path[path.length - 1]}`;
  return made;
};

function describe() {
  const run = current(), state = explored.state;
  const spot = hasPicture(run) ? `row ${place(run, state)[0]}, column ${place(run, state)[1]}` : `of ${run.count}`;
  element("chosen").textContent = `state ${state}, ${spot}`;
  element("state").value = state;
  if (!hasPicture(run)) return;
  for (const source of ["plain", "scaled"]) {
    const value = run.ranks[source] ? run.ranks[source][state] : null;
    element(`rank-${source}`).textContent = value === null ? "–" : value.toFixed(3);
    element(`rank-${source}`).dataset.value = value === null ? "" : value;
  }
  element("furthest").textContent = largest(trueSteps(run, state));
  for (const [source, title] of [["plain", "Plain distance"], ["scaled", "Scaled distance"], ["steps", "Number of steps"]]) {
    document.querySelector(`[data-figure="distance"][data-source="${source}"]`).setAttribute("aria-label", `${title} from state ${state}, ${spot}, to every other state`);
  }
}

function choose(state) {
  if (!(state >= 0 && state < current().count)) return;
  explored.state = state;
  describe();
  redraw('#explore [data-figure]');
}

// The next free cell in a direction, across walls if need be; without a picture the next number.
function moveChosen(key) {
  const run = current(), [down, right] = { ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowDown: [1, 0], ArrowLeft: [0, -1] }[key];
  if (!hasPicture(run)) return choose(explored.state + down + right);
  let [row, column] = place(run, explored.state);
  do { row += down; column += right; } while (row >= 0 && column >= 0 && row < run.rows && column < run.columns && stateAt(run, row, column) < 0);
  return choose(stateAt(run, row, column));
}
