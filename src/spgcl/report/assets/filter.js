// The controls that decide which nodes are shown, and how large they are.
class MapFilter {
  constructor(map) {
    this.map = map;
    this.choice = document.getElementById("filter");
    this.limits = document.getElementById("limits");
    this.choice.append(new Option("all nodes", ""));
    map.columns.forEach((column, index) => this.choice.append(new Option(column.name, index)));
    this.choice.addEventListener("change", () => { this.offer(); this.apply(); });
    this.limits.addEventListener("input", () => this.apply());
    this.errors = document.getElementById("errors");
    this.errors.parentElement.hidden = !map.columns.some((column) => column.errors);
    this.errors.addEventListener("change", () => this.apply());
    const sized = document.getElementById("sized");
    sized.addEventListener("change", () => { map.sized = sized.checked; map.draw(); });
  }

  // A list of categories, or a lower and an upper limit.
  offer() {
    const column = this.map.columns[this.choice.value];
    this.limits.replaceChildren();
    if (this.choice.value === "") return;
    if (column.names) {
      const values = element("select");
      this.map.categories(column).forEach((name, code) => values.append(new Option(name, code)));
      this.limits.append(labelled(column.name, values));
      return;
    }
    for (const name of ["from", "to"]) {
      const limit = element("input");
      limit.type = "number";
      limit.step = "any";
      this.limits.append(labelled(name, limit));
    }
  }

  reset() {
    this.choice.value = "";
    this.errors.checked = false;
    this.offer();
    this.apply();
  }

  apply() {
    this.map.errorsOnly = this.errors.checked;
    this.map.filter = this.choice.value === "" ? null : this.condition(this.map.columns[this.choice.value]);
    this.map.draw();
  }

  condition(column) {
    if (column.names) {
      const wanted = Number(this.limits.querySelector("select").value);
      return (node) => this.map.codeOf(node, column) === wanted;
    }
    const [low, high] = Array.from(this.limits.querySelectorAll("input"), (limit) => limit.valueAsNumber);
    return (node) => {
      const value = column.values[node];
      return !Number.isNaN(value) && !(value < low) && !(value > high);
    };
  }
}
