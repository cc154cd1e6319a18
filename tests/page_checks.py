"""What a browser is asked about any page: text that collides, faint text, labels off their lines."""

# Text that must not run into other text, wherever the browser is asked to draw it.
OVERLAPS = """() => {
  // The header lies over the page on purpose once it is scrolled.
  window.scrollTo({ top: 0, behavior: "instant" });
  const parts = "h1, h2, h3, h4, nav a, button, label, dt, dd, .strip .name, .strip .mean, .strip text, " +
    ".unit, .key span, td, th, .xtick text, .ytick text, .xtitle, .ramp span, footer";
  // What lies outside of a box that scrolls is not seen.
  const seen = (part) => {
    const { left, right, top, bottom } = part.getBoundingClientRect();
    const frame = part.closest("#node, .scroll")?.getBoundingClientRect() ?? { left, right, top, bottom };
    return {
      left: Math.max(left, frame.left), right: Math.min(right, frame.right),
      top: Math.max(top, frame.top), bottom: Math.min(bottom, frame.bottom),
    };
  };
  const boxes = [...document.querySelectorAll(parts)]
    .filter((part) => part.textContent.trim() && part.checkVisibility())
    .map((part) => ({ part, box: seen(part) }))
    .filter(({ box }) => box.right > box.left && box.bottom > box.top);
  const found = [];
  boxes.forEach(({ part, box }, index) => boxes.slice(index + 1).forEach((other) => {
    if (part.contains(other.part) || other.part.contains(part)) return;
    const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
    const high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
    if (wide > 1 && high > 2) found.push(`${part.textContent} | ${other.part.textContent}`);
  }));
  return found;
}"""
# Distances of the labels of an axis from the lines of the rows above.
TICKS = """() => [...document.querySelectorAll(".strips")].flatMap((item) => {
  const middle = (part) => (part.getBoundingClientRect().left + part.getBoundingClientRect().right) / 2;
  const lines = [...item.querySelectorAll(".strip")].slice(0, -1)
    .map((row) => [...row.querySelectorAll("line[stroke='var(--grid)']")].map(middle));
  const labels = [...item.querySelectorAll(".strip.scale text")].map(middle);
  return lines.flatMap((row) => row.map((line, index) => Math.abs(line - labels[index])));
})"""
# Contrast of all text with what is behind it, by the formula of WCAG; the lowest for each kind of element.
CONTRASTS = """() => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = paint.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (front, back) => back.map((part, index) => front[3] * front[index] + (1 - front[3]) * part);
  const behind = (part) => part
    ? over(rgba(getComputedStyle(part).backgroundColor), behind(part.parentElement)) : [255, 255, 255];
  const brightness = (colour) => {
    const [red, green, blue] = colour.map((part) => part / 255)
      .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const found = {};
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const part = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !part.checkVisibility()) continue;
    const style = getComputedStyle(part), ground = behind(part);
    const colour = over(rgba(part instanceof SVGElement ? style.fill : style.color), ground);
    const [low, high] = [brightness(colour), brightness(ground)].sort((a, b) => a - b);
    const kind = `${part.tagName} ${part.getAttribute("class") ?? ""}`;
    found[kind] = Math.min(found[kind] ?? 21, (high + 0.05) / (low + 0.05));
  }
  return found;
}"""
