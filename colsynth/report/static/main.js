// Builds the views of the page from the values that it carries.
"use strict";
colsynth.aboutLink = (machine, index) => {
  const [from, to, rate, latency] = machine.links[index];
  return `${machine.nodes[from].name} → ${machine.nodes[to].name}\n${colsynth.number(rate)} GB/s, latency ${colsynth.number(latency)} µs`;
};

colsynth.topology = (data) => {
  const stage = document.getElementById("topology-stage");
  if (!stage) return;
  const { machine } = data, links = new Map(), nodes = new Map(), losses = new Map();
  const linkOf = new Map(machine.links.map(([a, b], i) => [`${machine.nodes[a].name} -> ${machine.nodes[b].name}`, i]));
  const nodeOf = new Map(machine.nodes.map(({ name }, i) => [name, i]));
  for (const cut of data.cuts ?? []) {
    for (const name of cut.links) links.set(linkOf.get(name), "cut");
    for (const name of cut.apart) nodes.set(nodeOf.get(name), "apart");
  }
  for (const row of data.losses ?? []) for (const link of row.links) losses.set(link, row);
  if (data.survey) {
    const worst = Math.max(0, ...[...losses.values()].map((row) => row.loss_percent));
    for (const [link, row] of losses) if (worst > 0 && row.loss_percent === worst) links.set(link, "cut");
  }
  const about = (kind, index) => {
    if (kind === "link") {
      const row = losses.get(index), lost = row ? `\na failure costs ${colsynth.number(row.loss_percent)} % of the bound` : "";
      return colsynth.aboutLink(machine, index) + (links.has(index) && !data.survey ? "\nin the bottleneck cut" : "") + lost;
    }
    const node = machine.nodes[index], box = node.box === null ? "" : `, box ${node.box}`;
    return `${node.name}: ${node.kind}${node.rank === null ? "" : `, rank ${node.rank}`}${box}`;
  };
  new colsynth.Machine(stage, machine, about, { links, nodes });
};

// Rows of the timeline: spans of the steps of a rank, of the critical path, or of links.
colsynth.spans = (data, choice) => {
  const { units, blocks, sends, connections } = data.schedule, { nodes, links } = data.machine;
  const name = new Map(nodes.flatMap((node) => (node.rank === null ? [] : [[node.rank, node.name]])));
  const row = (unit, lane) => ({
    lane, from: unit[3] / 1000, to: unit[4] / 1000, op: unit[2], critical: unit[5] ? "critical path" : "other",
    text: `${name.get(blocks[unit[0]][0])}, threadblock ${blocks[unit[0]][1]}, step ${unit[1]} (${unit[2]})`,
  });
  const place = (unit) => `${name.get(blocks[unit[0]][0])} · tb ${String(blocks[unit[0]][1]).padStart(2, "0")}`;
  if (choice === "critical") return units.filter((unit) => unit[5]).map((unit) => row(unit, place(unit)));
  if (choice === "links") {
    const count = new Map();
    const rows = sends.flatMap((send) => connections[send[2]][3].map((link) => {
      const lane = `${nodes[links[link][0]].name} → ${nodes[links[link][1]].name}`, unit = units[send[3]];
      count.set(lane, (count.get(lane) ?? 0) + send[1] - send[0]);
      return { ...row(unit, lane), from: send[0] / 1000, to: send[1] / 1000 };
    }));
    const busiest = new Set([...count].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 64).map(([lane]) => lane));
    return rows.filter(({ lane }) => busiest.has(lane));
  }
  return units.filter((unit) => blocks[unit[0]][0] === Number(choice)).map((unit) => row(unit, place(unit)));
};

colsynth.plot = (place, spec, change) => {
  const host = document.getElementById(place);
  if (!host) return null;
  let view = null;
  const draw = () => {
    if (view) view.finalize();
    host.replaceChildren();
    const parsed = vega.parse(spec);
    view = new vega.View(parsed, { renderer: "svg", container: host, hover: true });
    view.tooltip((_, event, item, value) => {
      const said = value && typeof value === "object"
        ? Object.entries(value).map(([key, text]) => `${key}: ${text}`).join("\n") : value;
      colsynth.tip(said ? String(said) : "", event?.clientX, event?.clientY);
    });
    if (change) change(view);
    view.run();
    const drawn = host.querySelector("svg");
    if (drawn) { drawn.setAttribute("role", "img"); drawn.setAttribute("aria-label", host.dataset.label); }
    host.querySelectorAll("[role^=graphics]").forEach((item) => item.removeAttribute("role"));
  };
  let width = 0;
  const wake = () => {
    if (Math.abs(host.clientWidth - width) < 2) return;
    width = host.clientWidth;
    draw();
  };
  // Plots far below are drawn when they come near, or all before printing.
  let seen = false;
  const start = () => { if (!seen) { seen = true; new ResizeObserver(wake).observe(host); wake(); } };
  new IntersectionObserver((found) => found.some((entry) => entry.isIntersecting) && start(), { rootMargin: "600px" }).observe(host);
  addEventListener("beforeprint", start);
  return { redraw: () => seen && draw() };
};

colsynth.timeline = (data) => {
  const select = document.getElementById("timeline-of");
  if (!select || !data.schedule) return;
  select.add(new Option("critical path, all ranks", "critical"));
  select.add(new Option("busiest links", "links"));
  for (const node of data.machine.nodes) if (node.rank !== null) select.add(new Option(`threadblocks of ${node.name}`, node.rank));
  const fill = (view) => view.data("spans", colsynth.spans(data, select.value));
  const plot = colsynth.plot("timeline", colsynth.plots.timeline, fill);
  select.addEventListener("change", () => plot.redraw());
};

// Rows of the heat map: the busiest links, each with its shares over time.
colsynth.load = (view) => {
  const { links, bins, time_us: whole } = colsynth.data.load, { nodes, links: all } = colsynth.data.machine;
  const total = (row) => row.reduce((sum, share) => sum + share, 0) - row[0];
  const busiest = [...links].sort((a, b) => total(b) - total(a) || a[0] - b[0]).slice(0, 64);
  const width = whole / 1000 / bins;
  view.data("load", busiest.flatMap(([link, ...shares]) => shares.map((share, i) => ({
    link: `${nodes[all[link][0]].name} → ${nodes[all[link][1]].name}`, share, from: i * width, to: (i + 1) * width,
  }))));
};

const begin = () => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = read("data");
  Object.assign(colsynth, { data, plots: read("plots") });
  if (data.machine) colsynth.topology(data);
  const panel = document.getElementById("replay");
  if (panel && data.schedule) colsynth.replay = new colsynth.Replay(panel, data);
  for (const [name, spec] of Object.entries(colsynth.plots))
    if (name !== "timeline") colsynth.plot(name, spec, name === "load" ? colsynth.load : null);
  colsynth.timeline(data);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colsynth.redraw.forEach((again) => again()));
  document.documentElement.dataset.ready = "yes";
};
begin();
