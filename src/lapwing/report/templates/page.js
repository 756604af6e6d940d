"use strict";
// Controls, the theme, and figures that are drawn when they come into view.
const option = (value, text) => { const made = document.createElement("option"); made.value = value; made.textContent = text; return made; };
const subscript = number => "u" + String(number).replace(/\d/g, digit => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]);
const hasDepth = (() => { try { return Boolean(document.createElement("canvas").getContext("webgl")); } catch { return false; } })();

function fillControls() {
  const run = current(), count = run.values.length, numbers = run.values.map((_, k) => k);
  const second = Math.min(1, count - 1);
  Object.assign(explored, { axes: [second, Math.min(2, count - 1), -1], component: second, colour: run.psi.length ? "scaled" : "plain" });
  explored.state = run.values[second].reduce((low, value, i) => (value !== null && value < run.values[second][low] ? i : low), Math.max(0, run.values[second].findIndex(value => value !== null)));
  for (const select of document.querySelectorAll("[data-axis]")) {
    const axis = Number(select.dataset.axis), choices = numbers.map(k => option(k, subscript(k + 1)));
    if (axis === 2) choices.unshift(option(-1, hasDepth ? "none (2D)" : "none (no WebGL here)"));
    select.replaceChildren(...choices);
    select.value = explored.axes[axis];
    select.disabled = axis === 2 && !hasDepth;
  }
  const colours = [...(run.psi.length ? [option("scaled", "scaled distance")] : []), option("plain", "plain distance")];
  if (hasPicture(run)) colours.push(option("steps", "number of steps"));
  if (run.visits && !run.visits_shape) colours.push(option("visits", "visits"));
  element("colour").replaceChildren(...colours, ...numbers.map(k => option(`u${k}`, subscript(k + 1))));
  element("option-component").replaceChildren(...numbers.slice(1).map(k => option(k, subscript(k + 1))));
  element("option-component").value = explored.component;
  element("state").max = run.count - 1;
  element("distances").hidden = !hasPicture(run);
  element("options").hidden = !hasPicture(run) || count < 2;
  element("distance-scaled").hidden = !run.psi.length;
  element("option-method").textContent = run.method;
  element("option-exact").hidden = !run.exact;
  if (hasPicture(run)) {
    document.querySelectorAll("#explore .map").forEach(map => map.style.setProperty("--ratio", run.ratio));
  }
}

function step(select, by) {
  const next = select.selectedIndex + by;
  if (next < 0 || next >= select.options.length) return;
  select.selectedIndex = next;
  select.dispatchEvent(new Event("change"));
}

function wireExplore() {
  explored.run = DATA.runs.findIndex(run => run.values);
  fillControls();
  describe();
  element("state").addEventListener("change", event => {
    const wanted = Math.round(Number(event.target.value));
    choose(Math.min(Math.max(wanted || 0, 0), current().count - 1));
  });
  for (const target of ["walk", "options", "scatter"]) {
    element(target).addEventListener("keydown", event => {
      if (!event.key.startsWith("Arrow") || ["SELECT", "INPUT"].includes(event.target.tagName)) return;
      event.preventDefault();
      moveChosen(event.key);
    });
  }
  for (const select of document.querySelectorAll("[data-axis]")) {
    select.addEventListener("change", () => { explored.axes[Number(select.dataset.axis)] = Number(select.value); freshScatter(); });
  }
  element("colour").addEventListener("change", event => { explored.colour = event.target.value; redraw('[data-figure="scatter"]'); });
  element("option-component").addEventListener("change", event => { explored.component = Number(event.target.value); redraw('[data-figure="option"]'); });
  element("option-sign").addEventListener("change", event => { explored.sign = Number(event.target.value); redraw('[data-figure="option"]'); });
  element("option-previous").addEventListener("click", () => step(element("option-component"), -1));
  element("option-next").addEventListener("click", () => step(element("option-component"), 1));
  const runs = element("explored-run");
  if (runs) {
    runs.value = explored.run;
    runs.addEventListener("change", () => {
      explored.run = Number(runs.value);
      fillControls();
      describe();
      window.dispatchEvent(new Event("resize"));
      freshScatter();
      redraw("#explore [data-figure]");
    });
  }
}

// Two and three dimensions do not share axes: begin anew.
function freshScatter() {
  const figure = document.querySelector('[data-figure="scatter"]');
  if (!figure.dataset.drawn) return;
  Plotly.purge(figure);
  delete figure.dataset.drawn;
  draw(figure);
}

function wireComparison() {
  const select = element("compared");
  if (!select) return;
  const count = Math.max(1, ...DATA.runs.map(run => (run.values || []).length));
  const shown = Math.max(count, ...[...document.querySelectorAll("[data-compared]")].map(line => Number(line.dataset.compared)));
  select.replaceChildren(...Array.from({ length: shown }, (_, k) => option(k, subscript(k + 1))));
  const update = () => {
    document.querySelectorAll("[data-compared]").forEach(line => { line.hidden = Number(line.dataset.compared) !== Number(select.value) + 1; });
    redraw('[data-component="chosen"]');
  };
  select.value = Math.min(1, shown - 1);
  select.addEventListener("change", update);
  element("compared-previous").addEventListener("click", () => step(select, -1));
  element("compared-next").addEventListener("click", () => step(select, 1));
  update();
}

function wireTheme() {
  const button = element("theme");
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(isDark()));
    redraw("[data-figure]");
  };
  button.addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; show(); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

if (element("state")) wireExplore();
wireComparison();
wireTheme();
document.querySelectorAll("[data-log]").forEach(box => box.addEventListener("change", () => redraw(`[data-name="${box.dataset.log}"]`)));
const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); draw(entry.target); }
}, { rootMargin: "400px" });
document.querySelectorAll("[data-figure]").forEach(figure => watcher.observe(figure));
