// Draws a topology as SVG: boxes, nodes, directed links as bent lines whose width is bandwidth.
"use strict";
const colsynth = { data: null, redraw: [] };
window.colsynth = colsynth;

colsynth.svg = (name, attributes = {}, parent = null) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
};

colsynth.tip = (() => {
  let box = null;
  return (text, x = 0, y = 0) => {
    if (!box) {
      box = document.createElement("div");
      box.className = "tip";
      box.setAttribute("aria-hidden", "true");
      document.body.append(box);
    }
    box.hidden = !text;
    if (!text) return;
    box.textContent = text;
    const wide = box.offsetWidth, high = box.offsetHeight;
    box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - wide - 6))}px`;
    box.style.top = `${y + 18 + high > innerHeight ? Math.max(4, y - high - 10) : y + 16}px`;
  };
})();

colsynth.number = (value, digits = 4) =>
  value === null || value === undefined ? "–" : Number(value.toPrecision(digits)).toLocaleString("en-US", { maximumFractionDigits: 6 });

colsynth.size = (bytes) => {
  for (const [unit, scale] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (bytes >= scale) return `${colsynth.number(bytes / scale, 5)} ${unit}`;
  return `${bytes} B`;
};

class Machine {
  // `about(kind, index)` gives the text of a node or a link; `marks` classes by link and node.
  constructor(stage, machine, about, marks = {}) {
    Object.assign(this, { stage, machine, about, marks });
    this.chosen = -1;
    this.root = colsynth.svg("svg", { tabindex: 0, role: "group" });
    this.root.setAttribute("aria-label", stage.dataset.label);
    this.root.setAttribute("aria-describedby", `${stage.id}-said`);
    this.said = document.createElement("p");
    this.said.id = `${stage.id}-said`;
    this.said.className = "note screen";
    this.said.setAttribute("aria-live", "polite");
    this.said.textContent = "Hover, or focus the picture and press the arrow keys, for names and numbers.";
    stage.append(this.root);
    stage.after(this.said);
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("pointermove", (event) => this.hover(event));
    this.root.addEventListener("pointerleave", () => colsynth.tip(""));
    this.root.addEventListener("blur", () => colsynth.tip(""));
    new ResizeObserver(() => this.resize()).observe(stage);
    this.resize();
  }

  resize() {
    const name = this.stage.clientWidth < 620 ? "narrow" : "wide";
    if (name === this.name) return;
    this.name = name;
    this.layout = this.machine.layouts[name];
    this.draw();
    if (this.drawn) this.drawn();
  }

  draw() {
    const { nodes, links } = this.machine, [width, height] = this.layout.size;
    this.root.replaceChildren();
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.root.style.maxWidth = `${Math.max(width * 1.45, 480)}px`;
    this.root.style.margin = "0 auto";
    for (const { box, at } of this.layout.boxes) {
      const [x, y, w, h] = at;
      colsynth.svg("rect", { class: "frame", x: x - 12, y: y - 12, width: w + 24, height: h + 24, rx: 12 }, this.root);
      if (this.layout.boxes.length > 1)
        colsynth.svg("text", { class: "frame-name", x: x - 4, y: y + 4 }, this.root).textContent = `box ${box}`;
    }
    const most = Math.max(...links.map((link) => link[2])), widest = links.length > 200 ? 3 : 5;
    const wires = colsynth.svg("g", {}, this.root);
    this.paths = links.map(([from, to, rate], index) => {
      const d = this.curve(from, to);
      const width = Math.max(1, widest * Math.sqrt(rate / most));
      const path = colsynth.svg("path", { class: `link ${this.mark("links", index)}`, d, "stroke-width": width }, wires);
      colsynth.svg("path", { class: "hit", d, "data-link": index }, wires);
      return path;
    });
    this.dots = colsynth.svg("g", {}, this.root);
    this.boxes = nodes.map((node, index) => this.node(node, index));
  }

  mark(kind, index) {
    const found = this.marks[kind];
    return found && found.has(index) ? found.get(index) : "";
  }

  node(node, index) {
    const [x, y] = this.layout.nodes[index], w = node.kind === "switch" ? 92 : 58, h = 26;
    const group = colsynth.svg("g", { class: `node ${node.kind} ${this.mark("nodes", index)}`, "data-node": index }, this.root);
    colsynth.svg("rect", { class: "body", x: x - w / 2, y: y - h / 2, width: w, height: h, rx: node.kind === "switch" ? 13 : 6 }, group);
    const fill = node.kind === "gpu"
      ? colsynth.svg("rect", { class: "fill", x: x - w / 2 + 3, y: y + h / 2 - 7, width: 0, height: 4, rx: 2 }, group) : null;
    colsynth.svg("text", { x, y: y + (fill ? 1.5 : 4) }, group).textContent = node.name;
    return { group, fill, width: w - 6 };
  }

  control(from, to) {
    const [ax, ay] = this.layout.nodes[from], [bx, by] = this.layout.nodes[to];
    const length = Math.hypot(bx - ax, by - ay) || 1, bend = 5 + length * 0.05;
    return [ax, ay, (ax + bx) / 2 + ((ay - by) / length) * bend, (ay + by) / 2 + ((bx - ax) / length) * bend, bx, by];
  }

  curve(from, to) {
    const [ax, ay, cx, cy, bx, by] = this.control(from, to).map((x) => Math.round(x * 10) / 10);
    return `M${ax} ${ay}Q${cx} ${cy} ${bx} ${by}`;
  }

  // The place at a share of a way over several links.
  along(route, share) {
    const at = Math.min(route.length - 1, Math.floor(share * route.length)), t = share * route.length - at;
    const [from, to] = this.machine.links[route[at]], [ax, ay, cx, cy, bx, by] = this.control(from, to);
    const mix = (a, c, b) => (1 - t) * (1 - t) * a + 2 * t * (1 - t) * c + t * t * b;
    return [mix(ax, cx, bx), mix(ay, cy, by)];
  }

  hover(event) {
    const { node, link } = event.target.closest("[data-node],[data-link]")?.dataset ?? {};
    if (node === undefined && link === undefined) return colsynth.tip("");
    const text = node === undefined ? this.about("link", Number(link)) : this.about("node", Number(node));
    return colsynth.tip(text, event.clientX, event.clientY);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const count = this.machine.nodes.length, all = count + this.machine.links.length;
    this.root.querySelectorAll(".current").forEach((item) => item.classList.remove("current"));
    this.chosen = this.chosen < 0 && step < 0 ? all - 1 : (this.chosen + step + all) % all;
    const isNode = this.chosen < count, index = isNode ? this.chosen : this.chosen - count;
    (isNode ? this.boxes[index].group : this.paths[index]).classList.add("current");
    this.said.textContent = this.about(isNode ? "node" : "link", index).replaceAll("\n", " · ");
  }
}
colsynth.Machine = Machine;
