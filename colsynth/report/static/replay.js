// Plays a program on its topology: chunks move over links, outputs of ranks fill.
"use strict";
colsynth.viridis = (() => {
  const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  return (share) => {
    const at = Math.max(0, Math.min(0.9999, share)) * 4, low = Math.floor(at), part = at - low;
    return stops[low].map((value, i) => Math.round(value + (stops[low + 1][i] - value) * part));
  };
})();

class Replay {
  constructor(panel, data) {
    this.schedule = data.schedule;
    this.machine = data.machine;
    this.find = (name) => panel.querySelector(`[data-part="${name}"]`);
    this.time = 0;
    this.chunk = null;
    const ranks = this.machine.nodes.flatMap((node, index) => (node.rank === null ? [] : [[node.rank, index]]));
    this.nodeOf = new Map(ranks);
    this.slow = new Map(data.slow_links.map((link) => [link, "slow"]));
    this.prepare();
    this.picture = new colsynth.Machine(this.find("stage"), this.machine, (kind, index) => this.about(kind, index), { links: this.slow });
    this.picture.drawn = () => this.show();
    this.wire(panel);
    this.fillChunks();
    this.show();
    colsynth.redraw.push(() => this.show());
  }

  prepare() {
    const { sends, writes, output_chunks: wanted, needed } = this.schedule;
    const senders = new Set(sends.map((send) => send[3]));
    this.local = this.schedule.units.filter((_, unit) => !senders.has(unit));
    const starts = [...sends.map((send) => send[0]), ...this.local.map((unit) => unit[3])];
    this.moments = [...new Set([0, ...starts, this.schedule.time_ns])].sort((a, b) => a - b);
    this.columns = Math.max(1, ...wanted);
    this.cells = new Uint16Array(wanted.length * this.columns);
    this.needed = needed;
    this.written = 0;
    this.at = -1;
    this.writes = writes;
  }

  // Output levels at a time; going back starts over.
  advance(time) {
    if (time < this.at) { this.cells.fill(0); this.written = 0; }
    for (; this.written < this.writes.length && this.writes[this.written][0] <= time; this.written++) {
      const [, rank, first, levels] = this.writes[this.written];
      this.cells.set(levels, rank * this.columns + first);
    }
    this.at = time;
  }

  share(rank) {
    const many = this.schedule.output_chunks[rank];
    if (!many) return 0;
    let sum = 0;
    for (let i = 0; i < many; i++) sum += this.cells[rank * this.columns + i];
    return sum / (many * this.needed);
  }

  wire(panel) {
    const scrub = this.find("scrub");
    scrub.max = this.schedule.time_ns;
    scrub.addEventListener("input", () => { this.pause(); this.seek(Number(scrub.value)); });
    this.find("play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    this.find("first").addEventListener("click", () => { this.pause(); this.seek(0); });
    this.find("last").addEventListener("click", () => { this.pause(); this.seek(this.schedule.time_ns); });
    this.find("back").addEventListener("click", () => this.step(-1));
    this.find("next").addEventListener("click", () => this.step(1));
    this.find("chunk").addEventListener("change", (event) => this.choose(event.target.value));
    panel.addEventListener("keydown", (event) => this.key(event));
    const grid = this.find("buffers");
    grid.addEventListener("pointermove", (event) => this.cellTip(event));
    grid.addEventListener("pointerleave", () => colsynth.tip(""));
  }

  key(event) {
    if (/^(SELECT|INPUT|BUTTON|SUMMARY|A)$/.test(event.target.tagName) && event.key !== "Home" && event.key !== "End") return;
    const act = {
      " ": () => (this.timer ? this.pause() : this.play()), ".": () => this.step(1), ",": () => this.step(-1),
      Home: () => this.seek(0), End: () => this.seek(this.schedule.time_ns),
    }[event.key];
    if (act && event.target.tagName !== "SELECT") { event.preventDefault(); act(); }
  }

  step(way) {
    this.pause();
    const later = this.moments.findIndex((moment) => moment > this.time);
    const now = later < 0 ? this.moments.length - 1 : later - 1;
    const exact = this.moments[now] === this.time;
    const goal = way > 0 ? now + 1 : exact ? now - 1 : now;
    this.seek(this.moments[Math.max(0, Math.min(this.moments.length - 1, goal))]);
  }

  play() {
    if (this.time >= this.schedule.time_ns) this.seek(0);
    this.find("play").textContent = "Pause";
    let before = performance.now();
    const frame = (now) => {
      const seconds = Number(this.find("speed").value);
      this.seek(Math.min(this.schedule.time_ns, this.time + ((now - before) / 1000 / seconds) * this.schedule.time_ns));
      before = now;
      if (this.time >= this.schedule.time_ns) this.pause();
      else if (this.timer) this.timer = requestAnimationFrame(frame);
    };
    this.timer = requestAnimationFrame(frame);
  }

  pause() {
    cancelAnimationFrame(this.timer);
    this.timer = 0;
    this.find("play").textContent = "Play";
  }

  seek(time) {
    this.time = time;
    this.show();
  }

  fillChunks() {
    const { roots, reduces } = this.schedule, select = this.find("chunk"), by = new Map();
    roots.forEach((root, chunk) => root !== null && by.set(root, [...(by.get(root) ?? []), chunk]));
    const add = (value, text) => select.add(new Option(text, value));
    add("all", "all chunks");
    const word = reduces ? "reduced at" : "from";
    for (const [root, chunks] of [...by].sort((a, b) => a[0] - b[0]))
      add(`root ${root}`, `${word} ${this.name(root)}: ${chunks.length > 1 ? `${chunks.length} chunks` : `chunk ${chunks[0]}`}`);
    if (by.size && roots.length > by.size && roots.length <= 512)
      roots.forEach((root, chunk) => add(`chunk ${chunk}`, `chunk ${chunk}${root === null ? "" : `, ${word} ${this.name(root)}`}`));
  }

  choose(value) {
    const [kind, text] = value.split(" "), number = Number(text);
    const of = { root: (chunk) => this.schedule.roots[chunk] === number, chunk: (chunk) => chunk === number };
    this.chunk = of[kind] ?? null;
    this.show();
  }

  name(rank) { return this.machine.nodes[this.nodeOf.get(rank)].name; }

  mine(send) { return !this.chunk || send[4].some(this.chunk); }

  show() {
    const { sends, connections, time_ns: whole } = this.schedule, { picture } = this;
    this.advance(this.time);
    const now = sends.filter((send) => send[0] <= this.time && this.time < send[1] && this.mine(send));
    const busy = new Set(now.flatMap((send) => connections[send[2]][3]));
    const used = this.chunk
      ? new Set(sends.filter((s) => s[0] <= this.time && this.mine(s)).flatMap((s) => connections[s[2]][3])) : null;
    picture.paths.forEach((path, link) => {
      path.classList.toggle("busy", busy.has(link) || (used !== null && used.has(link)));
      path.classList.toggle("dim", used !== null && !used.has(link));
    });
    this.dots(now);
    const local = this.chunk ? [] : this.local.filter((unit) => unit[3] <= this.time && this.time < unit[4]);
    const working = new Set(local.map((unit) => this.schedule.blocks[unit[0]][0]));
    for (const [rank, node] of this.nodeOf) {
      const { group, fill, width } = picture.boxes[node];
      group.classList.toggle("working", working.has(rank));
      fill.setAttribute("width", Math.max(0, width * this.share(rank)).toFixed(1));
    }
    this.find("scrub").value = this.time;
    const filled = [...this.nodeOf.keys()].reduce((sum, rank) => sum + this.share(rank), 0);
    const told = this.schedule.output_chunks.filter((many) => many).length || 1;
    const micro = (ns) => (ns / 1000).toFixed(1);
    this.find("status").textContent =
      `${micro(this.time)} of ${micro(whole)} µs · ${now.length} transfers on ${busy.size} links, ${working.size} ranks take in data · outputs ${Math.round((100 * filled) / told)} % full`;
    this.find("scrub").setAttribute("aria-valuetext", `${micro(this.time)} microseconds`);
    this.list(now, local);
    this.paint();
  }

  dots(now) {
    const group = this.picture.dots, few = now.slice(0, 600);
    while (group.childElementCount > few.length) group.lastChild.remove();
    while (group.childElementCount < few.length) colsynth.svg("circle", { class: "dot", r: 5 }, group);
    few.forEach((send, i) => {
      const [x, y] = this.picture.along(this.schedule.connections[send[2]][3], (this.time - send[0]) / (send[1] - send[0]));
      group.children[i].setAttribute("cx", x.toFixed(1));
      group.children[i].setAttribute("cy", y.toFixed(1));
    });
  }

  describe(send) {
    const [source, target] = this.schedule.connections[send[2]], unit = this.schedule.units[send[3]];
    const chunks = send[4].filter((chunk) => chunk >= 0), first = chunks[0], last = chunks[chunks.length - 1];
    const what = !chunks.length ? "data" : chunks.length > 1 ? `chunks ${first}–${last}` : `chunk ${first}`;
    return `${this.name(source)} → ${this.name(target)}: ${what} (${unit[2]}, threadblock ${this.schedule.blocks[unit[0]][1]})`;
  }

  describeLocal(unit) {
    const [rank, block] = this.schedule.blocks[unit[0]];
    const verb = { cpy: "copies", re: "adds up", r: "takes in", rrc: "adds up" }[unit[2]] ?? "works on";
    return `${this.name(rank)} ${verb} data (${unit[2]}, threadblock ${block})`;
  }

  list(now, local) {
    const said = [...now.map((send) => this.describe(send)), ...local.map((unit) => this.describeLocal(unit))];
    const lines = said.slice(0, 60).map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    });
    if (!lines.length) {
      const item = document.createElement("li");
      item.textContent = this.idle();
      lines.push(item);
    }
    this.find("moving").replaceChildren(...lines);
  }

  idle() {
    if (!this.time) return "Press play, or step to the first transfer.";
    if (this.time < this.schedule.time_ns) return "Nothing moves: ranks wait for each other.";
    return this.schedule.complete ? "Done: every rank holds what it must." : "Done, but some ranks lack chunks.";
  }

  paint() {
    const canvas = this.find("buffers"), ranks = this.schedule.output_chunks.length;
    const wide = Math.max(canvas.clientWidth, 240), high = Math.max(7, Math.min(18, Math.round(420 / ranks))) * ranks;
    canvas.width = this.columns; canvas.height = ranks;
    canvas.style.height = `${high}px`;
    canvas.style.maxWidth = `${Math.max(240, 34 * this.columns)}px`;
    this.cell = [wide / this.columns, high / ranks];
    const pen = canvas.getContext("2d"), image = pen.createImageData(this.columns, ranks);
    for (let i = 0; i < this.cells.length; i++) {
      const there = i % this.columns < this.schedule.output_chunks[Math.floor(i / this.columns)];
      const [r, g, b] = colsynth.viridis(this.cells[i] / this.needed);
      image.data.set(there ? [r, g, b, this.cells[i] ? 255 : 70] : [0, 0, 0, 0], 4 * i);
    }
    pen.putImageData(image, 0, 0);
  }

  cellTip(event) {
    const { left, top, width, height } = event.target.getBoundingClientRect(), ranks = this.schedule.output_chunks.length;
    const column = Math.floor(((event.clientX - left) / width) * this.columns);
    const rank = Math.floor(((event.clientY - top) / height) * ranks);
    if (rank < 0 || rank >= ranks || column < 0 || column >= this.schedule.output_chunks[rank]) return colsynth.tip("");
    const level = this.cells[rank * this.columns + column];
    return colsynth.tip(`${this.name(rank)}, output chunk ${column}\n${level} of ${this.needed} contribution${this.needed > 1 ? "s" : ""}`, event.clientX, event.clientY);
  }

  about(kind, index) {
    if (kind === "link") return colsynth.aboutLink(this.machine, index) + (this.slow.has(index) ? "\nslow: on the critical path" : "");
    const { name, rank } = this.machine.nodes[index];
    if (rank === null) return name;
    return `${name}, rank ${rank}\noutput ${Math.round(100 * this.share(rank))} % full`;
  }
}
colsynth.Replay = Replay;
