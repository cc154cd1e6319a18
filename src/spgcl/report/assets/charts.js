"use strict";
// One function per kind of item (see charts.py). Text reaches the page through textContent only, never as HTML.

// Okabe and Ito's colours, which people with any colour vision can distinguish; dark ones are lighter on a dark
// ground, yellow is darker on a light ground, and grey replaces black.
const PALETTES = {
  light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#a89a00", "#6b7280"],
  dark: ["#3f8fe0", "#e69f00", "#00b386", "#e090be", "#8fd3ff", "#f0702a", "#f0e442", "#a3abb8"],
};
// From the ninth category on, colours repeat with another shape.
const SHAPES = ["circle", "diamond", "square", "triangle-up", "cross", "x"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
const OUTLINES = {
  "circle": "M7 2a5 5 0 1 0 .01 0z", "diamond": "M7 1l6 6-6 6-6-6z", "square": "M2 2h10v10H2z",
  "triangle-up": "M7 1l6 11H1z", "cross": "M5 1h4v4h4v4H9v4H5V9H1V5h4z",
  "x": "M3 1l4 4 4-4 2 2-4 4 4 4-2 2-4-4-4 4-2-2 4-4-4-4z",
};

function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== "") made.textContent = text;
  return made;
}

function drawing(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function themed(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function paletteColour(index) {
  const palette = PALETTES[document.documentElement.dataset.theme];
  return palette[index % palette.length];
}

// The same for elements of the page, which follow the theme.
function paletteVariable(index) {
  return `var(--palette-${index % PALETTES.light.length})`;
}

// How often the palette has been used up before this index.
function paletteRound(index) {
  return Math.floor(index / PALETTES.light.length);
}

// From low to high, so that both ends stand out from the ground; in even steps of brightness.
function rampColours() {
  return document.documentElement.dataset.theme === "dark"
    ? ["#4f7fd0", "#7b90b4", "#9d9f9c", "#bdb081", "#dcc863", "#fee838"]
    : ["#00224e", "#2f4170", "#585c70", "#7a7263", "#97843f", "#ad9000"];
}

function labelled(name, control) {
  const label = element("label", "field", name);
  label.append(control);
  return label;
}

function plainButton(name, pressed) {
  const button = element("button", "", name);
  button.type = "button";
  button.addEventListener("click", () => pressed(button));
  return button;
}

function saveText(name, text) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
}

function swatch(colour, shape) {
  const svg = drawing("svg", { width: 14, height: 14, "aria-hidden": "true" });
  svg.append(drawing("path", { d: OUTLINES[shape], fill: colour }));
  return svg;
}

// Integers are never rounded; other numbers have at least the digits before their point.
function shortNumber(value) {
  if (Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(Math.min(17, Math.max(7, 2 + Math.floor(Math.log10(Math.abs(value))))))));
}

const CHARTS = {
  text(item) { return element("p", "words", item.text); },

  code(item) {
    const box = element("div");
    const words = element("pre");
    // One span per word, so that lines do not break at the hyphens of an option.
    for (const word of item.text.split(" ")) words.append(element("span", "", word), " ");
    box.append(element("h3", "", "Command that repeats the run"), words);
    box.append(plainButton("Copy", async (button) => {
      try {
        await navigator.clipboard.writeText(item.text);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(words);
        button.textContent = "Selected";
      }
    }));
    return box;
  },

  facts(item) {
    const list = element("dl");
    for (const [name, value] of item.pairs) list.append(element("dt", "", name), element("dd", "", value));
    return list;
  },

  table(item) {
    const table = element("table", `plain ${item.runs}`);
    table.append(tableHead(item.columns));
    const body = table.createTBody();
    for (const cells of item.rows) {
      const row = body.insertRow();
      for (const cell of cells) row.append(element("td", cell.length > 32 ? "long" : "", cell));
    }
    const ofRuns = { rows: [...body.rows].map((row) => row.cells[0]), columns: [...table.tHead.rows[0].cells].slice(1) };
    (ofRuns[item.runs] ?? []).forEach((cell, run) => cell.prepend(runMark(run), " "));
    const scroll = scrolling(table, item.title);
    if (!item.folded) return scroll;
    const details = element("details");
    details.append(element("summary", "", item.title), scroll);
    return details;
  },

  matrix(item) {
    const table = element("table", "matrix");
    const head = tableHead([`${item.down} \\ ${item.across}`, ...item.names]);
    head.rows[0].cells[0].className = "corner";
    table.append(head);
    const body = table.createTBody();
    item.values.forEach((values, index) => {
      const row = body.insertRow();
      const name = element("th", "", item.names[index]);
      name.scope = "row";
      row.append(name);
      for (const value of values) {
        const cell = element("td", "", percent(value));
        cell.style.background = shade(value);
        row.append(cell);
      }
    });
    return scrolling(table, item.title);
  },

  strips(item) {
    const box = element("div");
    const scale = stripScale(item.rows, item.range);
    for (const row of item.rows) box.append(stripRow(row, scale));
    box.append(stripAxis(scale), element("div", "unit", item.unit));
    return box;
  },

  lines(item) {
    const box = element("div");
    const chart = element("div", "chart");
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", `${item.title} over ${item.across}`);
    const keys = element("div", "keys");
    const values = item.series.flatMap((curve) => curve.y).filter((value) => value !== null);
    const log = item.logarithmic ? signedLog(values) : null;
    box.append(element("p", "notes", [item.better, log && "logarithmic scale"].filter(Boolean).join(", ")), chart, keys);
    // Called when the box is in the page and has a size, and again when the theme changes.
    box.draw = () => {
      drawLines(chart, item, log);
      if (item.series.length > 1) keys.replaceChildren(...item.series.map(lineKey));
    };
    return box;
  },
};

function percent(fraction) {
  return fraction > 0 && fraction < 0.0005 ? "<0.1" : (100 * fraction).toFixed(fraction === 0 || fraction === 1 ? 0 : 1);
}

// Never so strong that text on it is hard to read.
function shade(fraction) {
  return `rgba(var(--shade), ${(0.04 + 0.42 * fraction).toFixed(3)})`;
}

function tableHead(columns) {
  const head = element("thead");
  const row = element("tr");
  for (const column of columns) {
    const cell = element("th", "", column);
    cell.scope = "col";
    row.append(cell);
  }
  head.append(row);
  return head;
}

function scrolling(content, label) {
  const scroll = element("div", "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", label);
  scroll.append(content);
  return scroll;
}

function stripScale(rows, range) {
  const values = [...range, ...rows.flatMap((row) => [...row.values, row.mean])].filter((value) => value !== null);
  let low = Math.min(...values), high = Math.max(...values);
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20].find((size) => (high - low) / size <= 5) ?? 25;
  low = Math.floor(low / step) * step;
  high = Math.max(low + step, Math.ceil(high / step) * step);
  const count = Math.round((high - low) / step);
  const ticks = Array.from({ length: count + 1 }, (_, index) => low + index * step);
  return { ticks, position: (value) => 100 * (value - low) / (high - low) };
}

// Labels are part of a drawing like that of the rows, so that they stay on the lines of the grid.
function stripAxis(scale) {
  const axis = element("div", "strip scale");
  const svg = drawing("svg", { "aria-hidden": "true" });
  for (const tick of scale.ticks) {
    const label = drawing("text", { x: `${scale.position(tick)}%`, y: 14, "text-anchor": "middle" });
    label.textContent = shortNumber(tick);
    svg.append(label);
  }
  axis.append(svg);
  return axis;
}

function stripRow(row, scale) {
  const line = element("div", `strip ${row.role}`);
  const svg = drawing("svg", { role: "img", "aria-label": `${row.name}: ${row.text}` });
  const colour = row.colour !== null ? paletteVariable(row.colour) : row.role === "own" ? "var(--accent)" : "var(--other)";
  for (const tick of scale.ticks) {
    const x = `${scale.position(tick)}%`;
    svg.append(drawing("line", { x1: x, x2: x, y1: 0, y2: 30, stroke: "var(--grid)" }));
  }
  // Differences have a line at zero.
  const zero = `${scale.position(0)}%`;
  if (scale.ticks[0] < 0) svg.append(drawing("line", { x1: zero, x2: zero, y1: 0, y2: 30, stroke: "var(--soft)" }));
  row.values.forEach((value, index) => {
    if (value === null) return;
    // Shifted up or down, so that equal scores do not hide each other.
    const y = 15 + 5 * ((index % 3) - 1);
    svg.append(drawing("circle", { cx: `${scale.position(value)}%`, cy: y, r: 4, fill: colour, "fill-opacity": 0.55 }));
  });
  if (row.mean !== null) {
    const x = `${scale.position(row.mean)}%`;
    const dash = row.role === "quoted" ? "4 3" : "none";
    svg.append(drawing("line", { x1: x, x2: x, y1: 2, y2: 28, stroke: colour, "stroke-width": 3, "stroke-dasharray": dash }));
  }
  const name = element("div", "name", row.name);
  if (row.colour !== null) name.prepend(runMark(row.colour), " ");
  line.append(name, svg, element("div", "mean", row.text));
  return line;
}

function dashIndex(curve) {
  return (curve.dash + paletteRound(curve.colour ?? 0)) % DASHES.length;
}

// A key of a legend: a small drawing and its name.
function drawnKey(name, width, height, parts) {
  const key = element("span", "key");
  const svg = drawing("svg", { width, height, "aria-hidden": "true" });
  svg.append(...parts);
  key.append(svg, element("span", "", name));
  return key;
}

function ringKey(name, colour, width) {
  return drawnKey(name, 18, 18, [drawing("circle", { cx: 9, cy: 9, r: 6, fill: "none", stroke: `var(--${colour})`, "stroke-width": width })]);
}

function sizeKey(name, size) {
  const side = Math.ceil(size) + 2;
  return drawnKey(name, side, side, [drawing("circle", { cx: side / 2, cy: side / 2, r: size / 2, fill: "var(--other)" })]);
}

function lineKey(curve) {
  const dash = ["none", "7 4", "2 3", "7 3 2 3"][dashIndex(curve)];
  const stroke = curve.stroke ?? paletteColour(curve.colour);
  const line = drawing("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke, "stroke-width": 3, "stroke-dasharray": dash });
  return drawnKey(curve.name, 26, 10, [line]);
}

// The colour of a run, and from the ninth run on its shape.
function runMark(run) {
  return swatch(paletteVariable(run), SHAPES[paletteRound(run) % SHAPES.length]);
}

function plotLayout(more) {
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, autosize: true,
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: themed("text") },
    hoverlabel: { bgcolor: themed("ground"), bordercolor: themed("line"), font: { color: themed("text") } },
    ...more,
  };
}

// A scale that is logarithmic away from zero and linear around it, for values of either sign that span more
// than a decade; null if they do not.
function signedLog(values) {
  const sizes = values.filter((value) => value).map(Math.abs).sort((a, b) => a - b);
  const small = sizes[Math.floor(sizes.length / 10)], large = sizes.at(-1);
  if (!sizes.length || large < 10 * small) return null;
  const unit = 10 ** Math.floor(Math.log10(Math.max(small, large / 1e6)));
  const low = Math.min(...values), high = Math.max(...values);
  const decades = Array.from({ length: Math.ceil(Math.log10(large / unit)) + 1 }, (_, power) => unit * 10 ** power);
  const steps = decades.length > 3 ? decades : decades.flatMap((decade) => [decade, 2 * decade, 5 * decade]);
  const ticks = [...steps.map((value) => -value), 0, ...steps].filter((value) => value >= low && value <= high);
  return { of: (value) => value === null ? null : Math.asinh(value / unit), ticks };
}

function drawLines(chart, item, log) {
  const axis = { gridcolor: themed("grid"), linecolor: themed("line"), zeroline: false, automargin: true };
  const traces = item.series.map((curve) => ({
    type: "scatter", mode: curve.x.length < 40 ? "lines+markers" : "lines",
    x: curve.x, y: log ? curve.y.map(log.of) : curve.y, customdata: curve.y,
    line: { color: paletteColour(curve.colour), width: 2, dash: DASHES[dashIndex(curve)] },
    hovertemplate: "%{x}: %{customdata}<extra></extra>",
  }));
  const marks = log ? { tickvals: log.ticks.map(log.of), ticktext: log.ticks.map((tick) => String(Number(tick.toPrecision(1)))) } : { nticks: 6 };
  const layout = plotLayout({
    margin: { l: 48, r: 12, t: 8, b: 40 },
    xaxis: { ...axis, title: { text: item.across, standoff: 6 }, nticks: 7 },
    yaxis: { ...axis, ...marks },
  });
  Plotly.react(chart, traces, layout, { displayModeBar: false, responsive: true });
}
