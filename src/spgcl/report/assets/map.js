// The map: points in a plane, a search box, and details of the selected node.

const VIEWS = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array };
// Above this many points the map is drawn with WebGL, if the browser has it.
const MANY = 3000;

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

class NodeMap {
  constructor(data) {
    this.data = data;
    this.ids = data.ids;
    for (const name of ["x", "y", "nearest", "similarities", "degrees", "linked", "links"]) {
      this[name] = unpacked(data[name]);
    }
    this.starts = [0];
    for (const count of this.linked) this.starts.push(this.starts.at(-1) + count);
    this.columns = data.colours.map((column) => ({ ...column, values: unpacked(column.values) }));
    this.lowered = this.ids.map((id) => id.toLowerCase());
    this.kind = this.ids.length > MANY && hasWebGL() ? "scattergl" : "scatter";
    this.column = this.columns[0];
    this.hidden = new Set();
    this.selected = null;
  }

  attach() {
    this.plot = document.getElementById("plane");
    this.card = document.getElementById("card");
    const choice = document.getElementById("colour");
    this.columns.forEach((column, index) => choice.append(new Option(column.name, index)));
    choice.addEventListener("change", () => this.colourBy(this.columns[choice.value]));
    for (const button of document.querySelectorAll("[data-view]")) {
      button.addEventListener("click", () => this.zoom(button.dataset.view));
    }
    this.draw();
    this.plot.on("plotly_hover", (event) => this.showCard(event));
    this.plot.on("plotly_unhover", () => { this.card.hidden = true; });
    this.plot.on("plotly_click", (event) => this.select(event.points[0].customdata, false));
    this.showNode();
    new NodeSearch(this);
  }

  // Colours

  colourBy(column) {
    this.column = column;
    this.hidden.clear();
    this.draw();
  }

  categories() {
    const unknown = this.column.values.some((code) => code < 0);
    return unknown ? [...this.column.names, "unknown"] : this.column.names;
  }

  markOf(code) {
    if (code >= this.column.names.length) return { colour: themed("other"), shape: "circle" };
    return { colour: paletteColour(code), shape: SHAPES[paletteRound(code) % SHAPES.length] };
  }

  size() {
    return this.ids.length > 20000 ? 3 : this.ids.length > MANY ? 4 : this.ids.length > 800 ? 5 : 8;
  }

  points(nodes, marker) {
    return {
      type: this.kind, mode: "markers", hoverinfo: "none", customdata: nodes,
      x: nodes.map((node) => this.x[node]), y: nodes.map((node) => this.y[node]),
      marker: { size: this.size(), opacity: 0.8, ...marker },
    };
  }

  coloured() {
    const all = Array.from(this.ids.keys());
    if (!this.column.names) {
      const shown = this.scaled();
      return [this.points(all, { color: all.map((node) => shown[node]), colorscale: "Cividis", showscale: false })];
    }
    const groups = this.categories().map(() => []);
    for (const node of all) groups[this.codeOf(node)].push(node);
    return groups.map((nodes, code) => {
      const { colour, shape } = this.markOf(code);
      return { ...this.points(nodes, { color: colour, symbol: shape }), visible: !this.hidden.has(code) };
    });
  }

  codeOf(node) {
    const code = this.column.values[node];
    return code < 0 ? this.column.names.length : code;
  }

  scaled() {
    const values = this.column.values;
    return this.column.logarithmic ? values.map((value) => Math.log10(1 + value)) : values;
  }

  valueOf(column, node) {
    const value = column.values[node];
    if (column.names) return value < 0 ? "unknown" : column.names[value];
    return Number.isNaN(value) ? "unknown" : String(Number(value.toPrecision(5)));
  }

  // Drawing

  draw() {
    const axis = { visible: false, zeroline: false, autorange: true };
    const layout = plotLayout({
      margin: { l: 4, r: 4, t: 4, b: 4 }, dragmode: "pan", hovermode: "closest", hoverdistance: 12,
      // Changing colours keeps the view.
      uirevision: "view", xaxis: axis, yaxis: { ...axis, scaleanchor: "x" },
    });
    const config = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset" };
    Plotly.react(this.plot, [...this.coloured(), ...this.marked()], layout, config);
    this.drawLegend();
  }

  // The selected node with its links and its nearest nodes. Drawn like the points, because WebGL traces lie
  // above all others.
  marked() {
    if (this.selected === null) return [];
    const links = this.linksOf(this.selected);
    const ends = (axis) => links.flatMap((node) => [axis[this.selected], axis[node], null]);
    const lines = {
      type: this.kind, mode: "lines", hoverinfo: "skip", x: ends(this.x), y: ends(this.y),
      line: { color: themed("other"), width: 1 },
    };
    const near = this.nearestOf(this.selected);
    return [lines, this.rings(near, 13, themed("accent"), 2), this.rings([this.selected], 20, themed("text"), 3)];
  }

  rings(nodes, size, colour, width) {
    return {
      type: this.kind, mode: "markers", hoverinfo: "skip",
      x: nodes.map((node) => this.x[node]), y: nodes.map((node) => this.y[node]),
      marker: { size, color: "rgba(0,0,0,0)", line: { color: colour, width } },
    };
  }

  drawLegend() {
    const legend = document.getElementById("legend");
    const keys = element("div", "keys");
    if (this.column.names) {
      this.categories().forEach((name, code) => keys.append(this.legendKey(name, code)));
    } else {
      keys.append(this.ramp());
    }
    legend.replaceChildren(keys);
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
    const values = this.column.values.filter((value) => !Number.isNaN(value));
    const low = values.reduce((a, b) => Math.min(a, b), Infinity), high = values.reduce((a, b) => Math.max(a, b), -Infinity);
    const middle = this.column.logarithmic ? Math.sqrt((1 + low) * (1 + high)) - 1 : (low + high) / 2;
    const box = element("div", "ramp");
    const bar = element("div");
    bar.style.background = "linear-gradient(90deg, #00224e, #35456c, #666970, #948e77, #c8b866, #fee838)";
    const ends = element("div");
    for (const value of [low, middle, high]) ends.append(element("span", "", String(Number(value.toPrecision(3)))));
    box.append(bar, ends);
    return box;
  }

  // View

  zoom(view) {
    if (view === "all") {
      Plotly.relayout(this.plot, { "xaxis.autorange": true, "yaxis.autorange": true });
      return;
    }
    const factor = view === "in" ? 0.5 : 2;
    const { xaxis, yaxis } = this.plot._fullLayout;
    this.centre((xaxis.range[0] + xaxis.range[1]) / 2, (yaxis.range[0] + yaxis.range[1]) / 2,
      factor * (xaxis.range[1] - xaxis.range[0]), factor * (yaxis.range[1] - yaxis.range[0]));
  }

  centre(x, y, width, height) {
    Plotly.relayout(this.plot, {
      "xaxis.range": [x - width / 2, x + width / 2], "yaxis.range": [y - height / 2, y + height / 2],
    });
  }

  // Centre the view on a node, at least as close as a fifth of the map.
  goTo(node) {
    const extent = (values) => values.reduce((a, b) => Math.max(a, b)) - values.reduce((a, b) => Math.min(a, b));
    const { xaxis, yaxis } = this.plot._fullLayout;
    const wide = xaxis.range[1] - xaxis.range[0], high = yaxis.range[1] - yaxis.range[0];
    const width = Math.min(wide, Math.max(extent(this.x), extent(this.y)) / 5 || 1);
    this.centre(this.x[node], this.y[node], width, width * high / wide);
  }

  select(node, centred = true) {
    this.selected = node;
    this.card.hidden = true;
    this.draw();
    if (centred) this.goTo(node);
    this.showNode();
  }

  // Details of a node

  linksOf(node) { return Array.from(this.links.subarray(this.starts[node], this.starts[node + 1])); }

  nearestOf(node) {
    const { listed } = this.data;
    return Array.from(this.nearest.subarray(node * listed, (node + 1) * listed));
  }

  showCard(event) {
    const point = event.points[0];
    if (point.customdata === undefined) return;
    const node = point.customdata;
    const links = this.linksOf(node).slice(0, 6).map((other) => this.ids[other]);
    const rest = this.degrees[node] - links.length;
    const words = links.length ? `linked to ${links.join(", ")}${rest ? ` and ${rest} more` : ""}` : `${this.degrees[node]} links`;
    this.card.replaceChildren(
      element("strong", "", this.ids[node]),
      element("div", "", `${this.column.name}: ${this.valueOf(this.column, node)}`), element("div", "quiet", words));
    this.card.hidden = false;
    const frame = this.plot.getBoundingClientRect();
    const left = event.event.clientX - frame.left, top = event.event.clientY - frame.top;
    this.card.style.left = `${Math.max(4, Math.min(left + 14, frame.width - this.card.offsetWidth - 4))}px`;
    this.card.style.top = `${top + 18 + this.card.offsetHeight > frame.height ? Math.max(4, top - this.card.offsetHeight - 10) : top + 18}px`;
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
    const near = element("ol");
    this.nearestOf(node).forEach((other, index) => {
      const button = this.jump(other);
      button.append(element("span", "number", (this.similarities[node * this.data.listed + index] / 1000).toFixed(3)));
      const line = element("li");
      line.append(button);
      near.append(line);
    });
    const links = element("div", "chips");
    for (const other of this.linksOf(node)) links.append(this.jump(other));
    const rest = this.degrees[node] - this.linked[node];
    if (rest) links.append(element("span", "quiet", this.linked[node] ? `and ${rest} more` : `${rest}, none of them shown`));
    if (!this.degrees[node]) links.append(element("span", "quiet", "none"));
    panel.replaceChildren(element("h3", "", this.ids[node]), facts,
      element("h4", "", "Nearest by embedding (cosine similarity)"), near,
      element("h4", "", this.data.directed ? "Its edges lead to" : "Neighbours in the graph"), links);
  }

  jump(node) {
    const button = element("button");
    button.type = "button";
    button.dataset.node = node;
    button.append(element("span", "", this.ids[node]));
    button.addEventListener("click", () => {
      this.select(node);
      document.querySelector("#node li button")?.focus({ preventScroll: true });
    });
    return button;
  }
}
