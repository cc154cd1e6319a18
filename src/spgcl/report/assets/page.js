// The page: its sections, and its theme.

const DATA = JSON.parse(document.getElementById("data").textContent);
const WIDE = new Set(["strips", "code"]);
// Larger matrices need the width of the page.
const MANY_CLASSES = 7;

function renderItem(item) {
  const wide = WIDE.has(item.kind) || item.folded || item.columns?.length > 5 || item.names?.length > MANY_CLASSES;
  const box = element("div", `item ${item.kind}${wide ? " wide" : ""}`);
  if (item.title && !item.folded) box.append(element("h3", "", item.title));
  const content = CHARTS[item.kind](item);
  box.append(content);
  if (content.draw) drawn.push(content);
  return box;
}

function renderSection(part) {
  const section = element("section");
  section.id = part.id;
  section.append(element("h2", "", part.title));
  if (part.text) section.append(element("p", "words", part.text));
  if (part.id === "map") section.append(document.getElementById("map-template").content.cloneNode(true));
  const items = element("div", "items");
  items.append(...part.items.map(renderItem));
  section.append(items);
  const link = element("a", "", part.title);
  link.href = `#${part.id}`;
  document.querySelector("nav").append(link);
  return section;
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  PALETTES[name].forEach((colour, index) => document.documentElement.style.setProperty(`--palette-${index}`, colour));
  const button = document.getElementById("theme");
  button.textContent = name === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `Switch to ${name === "dark" ? "light" : "dark"} colours`);
}

function drawAll() {
  for (const content of drawn) content.draw();
  nodeMap?.draw();
}

const drawn = [];
let nodeMap = null;
const system = matchMedia("(prefers-color-scheme: dark)");
setTheme(system.matches ? "dark" : "light");
document.getElementById("title").textContent = DATA.title;
document.getElementById("content").append(...DATA.sections.map(renderSection));
for (const content of drawn) content.draw();
if (DATA.map) {
  const map = new NodeMap(DATA.map);
  map.attach();
  nodeMap = map;
}
document.getElementById("theme").addEventListener("click", () => {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  drawAll();
});
system.addEventListener("change", () => {
  setTheme(system.matches ? "dark" : "light");
  drawAll();
});
