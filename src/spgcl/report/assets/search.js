const MOST_MATCHES = 8;

// A search box that lists nodes as one types: arrows move, Enter selects, Escape closes the list.
class NodeSearch {
  constructor(map) {
    this.map = map;
    this.box = document.getElementById("search");
    this.list = document.getElementById("matches");
    this.found = [];
    this.active = 0;
    this.box.addEventListener("input", () => this.update());
    this.box.addEventListener("focus", () => { if (this.box.value) this.update(); });
    this.box.addEventListener("blur", () => this.close());
    this.box.addEventListener("keydown", (event) => this.press(event));
  }

  // Exact matches first, then ids that begin with the text, then ids that contain it.
  matches(typed) {
    const wanted = typed.trim().toLowerCase();
    if (!wanted) return [];
    const ranks = [[], [], []];
    this.map.lowered.forEach((id, node) => {
      const rank = id === wanted ? 0 : id.startsWith(wanted) ? 1 : id.includes(wanted) ? 2 : 3;
      if (rank < 3 && ranks[rank].length < MOST_MATCHES) ranks[rank].push(node);
    });
    return ranks.flat().slice(0, MOST_MATCHES);
  }

  update() {
    this.found = this.matches(this.box.value);
    this.active = 0;
    if (!this.box.value.trim()) this.close();
    else this.show();
  }

  show() {
    const lines = this.found.map((node, index) => {
      const line = element("li", "", shortText(this.map.ids[node]));
      line.id = `match-${index}`;
      line.setAttribute("role", "option");
      line.setAttribute("aria-selected", String(index === this.active));
      // Not "click": the box loses its focus first, which closes the list.
      line.addEventListener("mousedown", (event) => { event.preventDefault(); this.choose(node); });
      return line;
    });
    this.list.replaceChildren(...(lines.length ? lines : [element("li", "none", "No node has this id")]));
    this.list.hidden = false;
    this.box.setAttribute("aria-expanded", "true");
    if (lines.length) this.box.setAttribute("aria-activedescendant", `match-${this.active}`);
  }

  close() {
    this.list.hidden = true;
    this.box.setAttribute("aria-expanded", "false");
    this.box.removeAttribute("aria-activedescendant");
  }

  press(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves && this.found.length) {
      this.active = (this.active + moves[event.key] + this.found.length) % this.found.length;
      this.show();
    } else if (event.key === "Enter" && this.found.length) {
      this.choose(this.found[this.active]);
    } else if (event.key === "Escape") {
      this.close();
    } else {
      return;
    }
    event.preventDefault();
  }

  choose(node) {
    this.box.value = this.map.ids[node];
    this.close();
    this.map.select(node);
  }
}
