// One view of the map: the nodes as points of a plane.

class MapView {
  constructor(map, data) {
    this.map = map;
    this.data = data;
    this.draws = 0;
    for (const name of ["x", "y", "nearest", "similarities"]) this[name] = unpacked(data[name]);
    this.frame = element("div", "map-frame");
    if (data.name) this.frame.append(this.title());
    this.plot = element("div", "plane");
    this.plot.setAttribute("role", "img");
    this.plot.setAttribute("aria-label", `Nodes as points of a plane${data.name ? `: ${data.name}` : ""}`);
    this.card = element("div", "card");
    this.card.hidden = true;
    const screen = element("div", "screen");
    screen.append(this.plot, this.card);
    this.frame.append(screen);
  }

  title() {
    const title = element("h3");
    title.append(runMark(this.data.colour), ` ${this.data.name}`);
    return title;
  }

  listen() {
    this.plot.on("plotly_hover", (event) => this.showCard(event));
    this.plot.on("plotly_unhover", () => { this.card.hidden = true; });
    this.plot.on("plotly_click", (event) => {
      const node = event.points[0].customdata;
      if (node !== undefined) this.map.select(node, false);
    });
    this.plot.on("plotly_selected", (event) => {
      // Removing an outline is an event, too, but has no shape.
      if (!event?.range && !event?.lassoPoints) return;
      const nodes = event.points.map((point) => point.customdata).filter((node) => node !== undefined);
      // Later, as Plotly is not done with its own drawing.
      setTimeout(() => this.map.choose(nodes));
    });
    this.plot.on("plotly_deselect", () => this.map.choose(null));
  }

  // Drawing

  draw() {
    const axis = { visible: false, zeroline: false, autorange: true };
    const layout = plotLayout({
      margin: { l: 4, r: 4, t: 4, b: 4 }, dragmode: this.map.mode, hovermode: "closest", hoverdistance: 12,
      // Changing colours keeps the view. The map keeps the selection: outlines go as soon as it has the nodes.
      uirevision: "view", selections: [], selectionrevision: this.draws += 1, xaxis: axis, yaxis: { ...axis, scaleanchor: "x" },
    });
    const config = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset" };
    this.card.hidden = true;
    Plotly.react(this.plot, [...this.coloured(), ...this.marked()], layout, config);
  }

  points(nodes, marker) {
    const { map } = this;
    const size = map.sized ? nodes.map((node) => map.sizeOf(map.degrees[node])) : map.sizeOf(0);
    const trace = {
      type: map.kind, mode: "markers", hoverinfo: "none", customdata: nodes,
      x: nodes.map((node) => this.x[node]), y: nodes.map((node) => this.y[node]),
      marker: { size, opacity: 0.8, line: { width: 0 }, ...marker }, unselected: { marker: { opacity: 0.12 } },
    };
    if (!map.chosen) return trace;
    return { ...trace, selectedpoints: nodes.flatMap((node, index) => map.chosen.has(node) ? [index] : []) };
  }

  coloured() {
    const { map } = this, { column } = map;
    if (!column.names) {
      const scale = map.scaleOf(column), colours = rampColours();
      const colorscale = colours.map((colour, index) => [index / (colours.length - 1), colour]);
      const isKnown = (node) => !Number.isNaN(column.values[node]);
      const known = map.shown.filter(isKnown);
      const marker = { color: known.map((node) => scale.of(column.values[node])), colorscale, cmin: 0, cmax: 1, showscale: false };
      return [this.points(map.shown.filter((node) => !isKnown(node)), { color: themed("other") }), this.points(known, marker)];
    }
    const groups = map.categories().map(() => []);
    for (const node of map.shown) groups[map.codeOf(node)].push(node);
    return groups.map((nodes, code) => {
      const { colour, shape } = map.markOf(code);
      return this.points(nodes, { color: colour, symbol: shape });
    });
  }

  // The selected node with its links and its nearest nodes. Drawn like the points, because WebGL traces lie
  // above all others.
  marked() {
    const node = this.map.selected;
    if (node === null) return [];
    const links = this.map.linksOf(node);
    const ends = (axis) => links.flatMap((other) => [axis[node], axis[other], null]);
    const lines = {
      type: this.map.kind, mode: "lines", hoverinfo: "skip", x: ends(this.x), y: ends(this.y),
      line: { color: themed("other"), width: 1 },
    };
    return [lines, this.rings(this.nearestOf(node), 13, themed("accent"), 2), this.rings([node], 20, themed("text"), 3)];
  }

  rings(nodes, size, colour, width) {
    return {
      type: this.map.kind, mode: "markers", hoverinfo: "skip",
      x: nodes.map((node) => this.x[node]), y: nodes.map((node) => this.y[node]),
      marker: {
        // Around the points, however large.
        size: nodes.map((node) => Math.max(size, this.map.sizeOf(this.map.degrees[node]) + 6)),
        opacity: 1, color: "rgba(0,0,0,0)", line: { color: colour, width },
      },
    };
  }

  // What is in view

  ranges() {
    const { xaxis, yaxis } = this.plot._fullLayout;
    return [xaxis.range, yaxis.range];
  }

  zoom(view) {
    if (view === "all") {
      Plotly.relayout(this.plot, { "xaxis.autorange": true, "yaxis.autorange": true });
      return;
    }
    const factor = view === "in" ? 0.5 : 2;
    const [[left, right], [bottom, top]] = this.ranges();
    this.centre((left + right) / 2, (bottom + top) / 2, factor * (right - left), factor * (top - bottom));
  }

  centre(x, y, width, height) {
    Plotly.relayout(this.plot, {
      "xaxis.range": [x - width / 2, x + width / 2], "yaxis.range": [y - height / 2, y + height / 2],
    });
  }

  // Move to a node with all that it is linked to, at most as close as a fifth of the map; unless `moving`,
  // only if a part of them is out of view.
  follow(node, moving) {
    const nodes = [node, ...this.nearestOf(node), ...this.map.linksOf(node)];
    const extent = (values) => [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
    const boxes = [this.x, this.y].map((axis) => extent(nodes.map((other) => axis[other])));
    const ranges = this.ranges();
    const isInside = boxes.every(([low, high], index) => low >= ranges[index][0] && high <= ranges[index][1]);
    if (isInside && !moving) return;
    const fifth = Math.max(...[this.x, this.y].map((axis) => extent(axis)).map(([low, high]) => high - low)) / 5 || 1;
    const [wide, high] = ranges.map(([low, top]) => top - low);
    const [width, height] = boxes.map(([low, top]) => 1.15 * (top - low));
    const shown = Math.max(width, height * wide / high, fifth);
    const [x, y] = boxes.map(([low, top]) => (low + top) / 2);
    this.centre(x, y, shown, shown * high / wide);
  }

  // Details of a node

  nearestOf(node) {
    const { listed } = this.data;
    return Array.from(this.nearest.subarray(node * listed, (node + 1) * listed));
  }

  nearestList(node) {
    const list = element("ol");
    this.nearestOf(node).forEach((other, index) => {
      const button = this.map.jump(other);
      button.append(element("span", "number", (this.similarities[node * this.data.listed + index] / 1000).toFixed(3)));
      const line = element("li");
      line.append(button);
      list.append(line);
    });
    const box = element("div"), title = element("h4", "", "Nearest by embedding (cosine similarity)");
    if (this.data.name) title.append(": ", runMark(this.data.colour), ` ${this.data.name}`);
    box.append(title, list);
    return box;
  }

  showCard(event) {
    const node = event.points[0].customdata;
    if (node === undefined) return;
    const { map } = this;
    const links = map.linksOf(node).slice(0, 6).map((other) => shortText(map.ids[other]));
    const rest = map.degrees[node] - links.length;
    const words = links.length ? `linked to ${links.join(", ")}${rest ? ` and ${rest} more` : ""}` : `${map.degrees[node]} links`;
    this.card.replaceChildren(
      element("strong", "", shortText(map.ids[node])),
      element("div", "", `${map.column.name}: ${map.valueOf(map.column, node)}`), element("div", "quiet", words));
    this.card.hidden = false;
    const frame = this.plot.getBoundingClientRect();
    const left = event.event.clientX - frame.left, top = event.event.clientY - frame.top;
    this.card.style.left = `${Math.max(4, Math.min(left + 14, frame.width - this.card.offsetWidth - 4))}px`;
    this.card.style.top = `${top + 18 + this.card.offsetHeight > frame.height ? Math.max(4, top - this.card.offsetHeight - 10) : top + 18}px`;
  }
}
