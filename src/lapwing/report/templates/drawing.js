"use strict";
// Figures from the page's one block of data: what is drawn when it comes into view, and in which colours.
const DATA = JSON.parse(document.getElementById("data").textContent);
const DIVERGING = ["#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b", "#67001f"]
  .map((colour, i) => [i / 10, colour]);
const SEQUENTIAL = "Viridis";
const WALL = "#282c34", UNKNOWN = "#b9b4a7", MARK = "#ff2fa0";
const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false };
const BUILDERS = {};

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

const titled = axis => (axis.title ? { ...axis, title: { ...axis.title, standoff: 10, font: { size: 13 } } } : axis);

// Those of panels below each other are numbered.
const axesOf = layout => ["xaxis", "yaxis", ...Object.keys(layout).filter(name => /^[xy]axis\d+$/.test(name))];

function themed(layout) {
  const ink = isDark() ? "#e9ebef" : "#1b1f27", line = isDark() ? "#343a46" : "#dde1e8", panel = isDark() ? "#1d2027" : "#ffffff";
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true };
  const merged = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false, ...layout,
    font: { color: ink, size: 12.5, family: "system-ui, 'Segoe UI', Roboto, Arial, sans-serif" },
    hoverlabel: { bgcolor: panel, bordercolor: line, font: { color: ink } },
  };
  for (const name of axesOf(layout)) merged[name] = titled({ ...axis, ...(layout[name] || {}) });
  if (layout.scene) {
    merged.scene = { ...layout.scene };
    for (const name of ["xaxis", "yaxis", "zaxis"]) merged.scene[name] = { ...axis, backgroundcolor: "rgba(0,0,0,0)", ...layout.scene[name] };
  }
  return merged;
}

// One number per state as a matrix of pixels; null at walls.
function canvas(run, values) {
  const rows = Array.from({ length: run.rows }, () => new Array(run.columns).fill(null));
  run.cells.forEach((cell, i) => { rows[Math.floor(cell / run.columns)][cell % run.columns] = values[i]; });
  return rows;
}

function place(run, i) {
  return [Math.floor(run.cells[i] / run.columns), run.cells[i] % run.columns];
}

function mapLayout(run) {
  const bare = { visible: false, fixedrange: true, automargin: false };
  return {
    margin: { l: 0, r: 0, t: 0, b: 0 }, plot_bgcolor: WALL, showlegend: false,
    xaxis: { ...bare, range: [-0.5, run.columns - 0.5] }, yaxis: { ...bare, range: [run.rows - 0.5, -0.5] },
  };
}

function mapFigure(run, values, options) {
  const traces = [];
  if (values.some(value => value === null)) {
    traces.push({ type: "heatmap", z: canvas(run, values.map(() => 0)), colorscale: [[0, UNKNOWN], [1, UNKNOWN]], showscale: false, hoverinfo: "skip" });
  }
  traces.push({
    type: "heatmap", z: canvas(run, values), colorscale: options.scale, zmin: options.low, zmax: options.high, showscale: false,
    hoverongaps: false, hovertemplate: `row %{y}, column %{x}: %{z:${options.format || ".3f"}}<extra></extra>`,
  });
  if (options.chosen !== undefined) {
    const [row, column] = place(run, options.chosen);
    const ring = size => ({ symbol: "circle-open", size, color: size > 14 ? "#ffffff" : MARK, line: { width: 3 } });
    for (const size of [17, 12]) traces.push({ type: "scatter", x: [column], y: [row], mode: "markers", marker: ring(size), hoverinfo: "skip" });
  }
  return { data: traces, layout: mapLayout(run) };
}

BUILDERS.static = element => {
  const figure = DATA.figures[element.dataset.name];
  const box = document.querySelector(`[data-log="${element.dataset.name}"]`);
  const layout = { ...figure.layout, yaxis: { ...figure.layout.yaxis, ...(box && box.checked ? { type: "log" } : {}) } };
  for (const name of axesOf(layout)) layout[name] = { ...layout[name], fixedrange: true };
  return { data: figure.data, layout };
};

// Signs are free: on a comparison they follow the first run on the same states.
function signBeside(run, component) {
  const first = DATA.runs.find(other => other.values && other.count === run.count && other.values[component]);
  if (DATA.runs.length < 2 || !first || first === run) return 1;
  const product = run.values[component].reduce((sum, value, i) => sum + (value || 0) * (first.values[component][i] || 0), 0);
  return product < 0 ? -1 : 1;
}

BUILDERS.map = element => {
  const run = DATA.runs[Number(element.dataset.run)];
  const chosen = document.getElementById("compared");
  const component = element.dataset.component === "chosen" ? Number(chosen.value) : Number(element.dataset.component);
  if (!run.values[component]) return mapFigure(run, run.cells.map(() => null), { scale: DIVERGING, low: -1, high: 1 });
  const sign = signBeside(run, component), bound = run.bounds[component];
  const values = run[element.dataset.source][component].map(value => (value === null ? null : sign * value));
  return mapFigure(run, values, { scale: DIVERGING, low: -bound, high: bound });
};

BUILDERS.visits = element => {
  const run = DATA.runs[Number(element.dataset.run)];
  const shaped = run.visits_shape ? { rows: run.visits_shape[0], columns: run.visits_shape[1], cells: run.visits.map((_, i) => i) } : run;
  const figure = mapFigure(shaped, run.visits, { scale: "Cividis", low: 0, high: Math.max(...run.visits), format: ",d" });
  figure.data[figure.data.length - 1].showscale = true;
  figure.data[figure.data.length - 1].colorbar = { thickness: 10, outlinewidth: 0, x: 1, xpad: 6, nticks: 5 };
  figure.layout.margin.r = 58;
  return figure;
};

function draw(element) {
  const figure = BUILDERS[element.dataset.figure](element);
  if (!figure) return;
  const first = !element.dataset.drawn;
  element.dataset.drawn = "yes";
  Plotly.react(element, figure.data, themed(figure.layout), CONFIG);
  if (first && figure.click) element.on("plotly_click", event => figure.click(event.points[0]));
}

function redraw(selector) {
  document.querySelectorAll(selector).forEach(element => { if (element.dataset.drawn) draw(element); });
}
