// The map: what its views share - columns, filters, the selection and the panels next to it.

const VIEWS = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
// Above this many points the map is drawn with WebGL, if the browser has it.
const MANY = 3000;
const MOST_LISTED = 200;

function unpacked(array) {
  const bytes = Uint8Array.from(atob(array.data), (character) => character.charCodeAt(0));
  return new VIEWS[array.type](bytes.buffer);
}

function hasWebGL() {
  try {
    return Boolean(document.createElement("canvas").getContext("webgl"));
  } catch {
    return false;
  }
}

function shortText(text, limit = 60) {
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

// Positions of numbers between 0 and 1, and numbers to label: by rank if the column is skewed, else linear.
function colourScale(column) {
  const known = Float64Array.from(column.values).filter((value) => !Number.isNaN(value)).sort();
  if (!known.length) return { of: () => 0, ticks: [] };
  const low = known[0], high = known.at(-1);
  // The first index at which `beyond` holds; ties share the middle of their ranks.
  const first = (beyond) => {
    let start = 0, end = known.length;
    while (start < end) {
      const middle = (start + end) >> 1;
      if (beyond(known[middle])) end = middle; else start = middle + 1;
    }
    return start;
  };
  const rank = (value) => first((other) => other >= value) + first((other) => other > value);
  const measure = column.skewed ? rank : (value) => value;
  const start = measure(low), length = measure(high) - start || 1;
  const of = (value) => (measure(value) - start) / length;
  const quantiles = [0.25, 0.5, 0.75].map((part) => known[Math.floor(part * (known.length - 1))]);
  const ticks = [low];
  for (const value of column.skewed ? quantiles : [(low + high) / 2]) {
    if (of(value) - of(ticks.at(-1)) > 0.15 && of(value) < 0.85) ticks.push(value);
  }
  return { of, ticks: high > low ? [...ticks, high] : ticks };
}

class NodeMap {
  constructor(data) {
    this.data = data;
    this.ids = data.ids;
    for (const name of ["degrees", "linked", "links"]) this[name] = unpacked(data[name]);
    this.starts = [0];
    for (const count of this.linked) this.starts.push(this.starts.at(-1) + count);
    this.columns = data.colours.map((column) => ({ ...column, values: unpacked(column.values) }));
    this.lowered = this.ids.map((id) => id.toLowerCase());
    this.fewestLinks = this.degrees.reduce((a, b) => Math.min(a, b));
    this.mostLinks = this.degrees.reduce((a, b) => Math.max(a, b), 1);
    this.kind = this.ids.length > MANY && hasWebGL() ? "scattergl" : "scatter";
    this.column = this.columns[0];
    this.hidden = new Set();
    // What a node has to satisfy to be shown, and what was chosen on the map.
    this.filter = null;
    this.errorsOnly = false;
    this.chosen = null;
    this.sized = false;
    this.selected = null;
    this.mode = "pan";
  }

  attach() {
    this.views = this.data.views.map((view) => new MapView(this, view));
    document.getElementById("views").append(...this.views.map((view) => view.frame));
    document.querySelector(".map-body").classList.toggle("several", this.views.length > 1);
    const choice = document.getElementById("colour");
    this.columns.forEach((column, index) => choice.append(new Option(column.name, index)));
    choice.addEventListener("change", () => this.colourBy(this.columns[choice.value]));
    for (const button of document.querySelectorAll("[data-view]")) {
      button.addEventListener("click", () => this.views.forEach((view) => view.zoom(button.dataset.view)));
    }
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.addEventListener("click", () => { this.mode = button.dataset.mode; this.draw(); });
    }
    this.filters = new MapFilter(this);
    new NodeSearch(this);
    this.draw();
    this.views.forEach((view) => view.listen());
    this.showNode();
  }

  // Columns

  colourBy(column) {
    this.column = column;
    this.hidden.clear();
    this.draw();
  }

  categories(column = this.column) {
    const unknown = column.values.some((code) => code < 0);
    return unknown ? [...column.names, "unknown"] : column.names;
  }

  markOf(code) {
    if (code >= this.column.names.length) return { colour: themed("other"), shape: "circle" };
    return { colour: paletteColour(code), shape: SHAPES[paletteRound(code) % SHAPES.length] };
  }

  codeOf(node, column = this.column) {
    const code = column.values[node];
    return code < 0 ? column.names.length : code;
  }

  scaleOf(column) { return column.scale ??= colourScale(column); }

  valueOf(column, node, written = shortNumber) {
    const value = column.values[node];
    if (column.names) return column.texts?.[node] ?? (value < 0 ? "unknown" : column.names[value]);
    return Number.isNaN(value) ? "unknown" : written(value);
  }

  // Which nodes are shown

  isShown(node) {
    if (this.column.names && this.hidden.has(this.codeOf(node))) return false;
    if (this.errorsOnly && !this.columns.some((column) => column.errors && column.values[node] === 1)) return false;
    return !this.filter || this.filter(node);
  }

  isFiltered() { return Boolean(this.filter) || this.errorsOnly || this.hidden.size > 0; }

  // The nodes of the list: those chosen on the map, or all that are shown if not all are.
  listed() {
    if (!this.chosen && !this.isFiltered()) return null;
    return this.shown.filter((node) => !this.chosen || this.chosen.has(node));
  }

  choose(nodes) {
    this.chosen = nodes && new Set(nodes);
    this.draw();
  }

  // Drawing

  draw() {
    this.shown = Array.from(this.ids.keys()).filter((node) => this.isShown(node));
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === this.mode));
    }
    for (const view of this.views) view.draw();
    this.drawLegend();
    this.showChosen();
  }

  drawLegend() {
    const keys = element("div", "keys"), marks = element("div", "keys marks");
    if (this.column.names) this.categories().forEach((name, code) => keys.append(this.legendKey(name, code)));
    else keys.append(this.ramp());
    if (this.selected !== null) {
      marks.append(ringKey("selected", "text", 3), ringKey("nearest by embedding", "accent", 2),
        lineKey({ name: "link in the graph", stroke: themed("other"), dash: 0 }));
    }
    if (this.sized) {
      for (const degree of new Set([this.fewestLinks, this.mostLinks])) marks.append(sizeKey(`degree ${degree}`, this.sizeOf(degree)));
    }
    document.getElementById("legend").replaceChildren(keys, marks);
  }

  legendKey(name, code) {
    const { colour, shape } = this.markOf(code);
    const key = element("button", "key");
    key.type = "button";
    key.setAttribute("aria-pressed", String(!this.hidden.has(code)));
    key.title = "Show or hide";
    key.append(swatch(colour, shape), element("span", "", name));
    key.addEventListener("click", () => {
      if (!this.hidden.delete(code)) this.hidden.add(code);
      this.draw();
      document.getElementById("legend").querySelectorAll("button")[code].focus();
    });
    return key;
  }

  ramp() {
    const scale = this.scaleOf(this.column);
    const box = element("div", "ramp");
    const bar = element("div"), ticks = element("div");
    bar.style.background = `linear-gradient(90deg, ${rampColours().join(", ")})`;
    for (const value of scale.ticks) {
      const tick = element("span", "", shortNumber(value));
      tick.style.left = `${100 * scale.of(value)}%`;
      ticks.append(tick);
    }
    box.append(bar, ticks);
    if (this.column.skewed) box.append(element("div", "quiet", "by rank: equal steps of colour hold equally many nodes"));
    return box;
  }

  sizeOf(degree) {
    const base = this.ids.length > 20000 ? 3 : this.ids.length > MANY ? 4 : this.ids.length > 800 ? 5 : 8;
    return this.sized ? base * (0.6 + 2.4 * Math.sqrt(degree / this.mostLinks)) : base;
  }

  select(node, moving = true) {
    this.selected = node;
    this.draw();
    for (const view of this.views) view.follow(node, moving);
    this.showNode();
  }

  // Panels

  linksOf(node) { return Array.from(this.links.subarray(this.starts[node], this.starts[node + 1])); }

  showChosen() {
    const panel = document.getElementById("chosen");
    const nodes = this.listed();
    panel.hidden = !nodes;
    if (!nodes) return;
    const buttons = element("div", "buttons"), ids = element("div", "chips");
    buttons.append(
      plainButton("Save as CSV", () => saveText("nodes.csv", this.csv(nodes))),
      this.chosen
        ? plainButton("Clear selection", () => this.choose(null))
        : plainButton("Show all nodes", () => { this.hidden.clear(); this.filters.reset(); }));
    for (const node of nodes.slice(0, MOST_LISTED)) ids.append(this.jump(node));
    if (nodes.length > MOST_LISTED) ids.append(element("span", "quiet", `and ${nodes.length - MOST_LISTED} more in the file`));
    panel.replaceChildren(element("h3", "", `${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}`), buttons, ids);
  }

  csv(nodes) {
    const quoted = (cell) => /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
    const rows = nodes.map((node) => [this.ids[node], ...this.columns.map((column) => this.valueOf(column, node, String))]);
    return [["node", ...this.columns.map((column) => column.name)], ...rows].map((row) => `${row.map(quoted).join(",")}\n`).join("");
  }

  showNode() {
    const panel = document.getElementById("node");
    if (this.selected === null) {
      panel.replaceChildren(element("h3", "", "No node selected"), element("p", "quiet", "Search for an id, or click a point."));
      return;
    }
    const node = this.selected;
    const facts = element("dl");
    for (const column of this.columns) facts.append(element("dt", "", column.name), element("dd", "", this.valueOf(column, node)));
    const lists = element("div", "lists");
    lists.append(...this.views.map((view) => view.nearestList(node)));
    const links = element("div", "chips");
    for (const other of this.linksOf(node)) links.append(this.jump(other));
    const rest = this.degrees[node] - this.linked[node];
    if (rest) links.append(element("span", "quiet", this.linked[node] ? `and ${rest} more` : `${rest}, none of them shown`));
    if (!this.degrees[node]) links.append(element("span", "quiet", "none"));
    panel.replaceChildren(element("h3", "", shortText(this.ids[node])), facts, lists,
      element("h4", "", this.data.directed ? "Its edges lead to" : "Neighbours in the graph"), links);
  }

  jump(node) {
    const button = plainButton("", () => {
      this.select(node);
      document.querySelector("#node li button")?.focus({ preventScroll: true });
    });
    button.dataset.node = node;
    button.append(element("span", "", shortText(this.ids[node])));
    return button;
  }
}
