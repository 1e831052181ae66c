"use strict";
(async () => {
const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), c => c.charCodeAt(0));
const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
const facts = JSON.parse(await new Response(stream).text());

const make = (tag, text, cls) => {
  const e = document.createElement(tag);
  if (text !== undefined && text !== null) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};
const number = v => v === null || v === undefined ? "" : v.toLocaleString("en");
const size = v => {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let i = 0;
  while (v >= 1000 && i < units.length - 1) { v /= 1000; i++; }
  return (i && v < 100 ? v.toFixed(1) : Math.round(v)) + " " + units[i];
};
// The zone of a time: each entry holds from its hour on, until the next one.
const zone = t => { let i = facts.zones.length - 1; while (i > 0 && facts.zones[i][0] > t.slice(0, 10)) i--; return i < 0 ? "" : facts.zones[i][1]; };
const time = t => !t ? "" : /^\d{14,17}$/.test(t) && t > "1971"
  ? `${t.slice(0,4)}-${t.slice(4,6)}-${t.slice(6,8)} ${t.slice(8,10)}:${t.slice(10,12)}:${t.slice(12,14)} ${zone(t)}` : t;
const seconds = t => !t || !/^\d{14,17}$/.test(t) ? null
  : Date.UTC(+t.slice(0,4), t.slice(4,6)-1, +t.slice(6,8), +t.slice(8,10), +t.slice(10,12), +t.slice(12,14), +t.slice(14,17)) / 1000;
const took = (from, to) => {
  const a = seconds(from), b = seconds(to);
  return a === null || b === null ? null : Math.max(0, b - a);
};
const card = (title, ...inside) => {
  const e = make("section", null, "card");
  if (title) e.append(make("h2", title));
  e.append(...inside);
  return e;
};

// A sortable, searchable table of `count` rows; only the page in view has elements.
function rows(count, columns, initial) {
  const PAGE = 50;
  const box = make("div"), bar = make("div", null, "bar"), search = make("input");
  search.placeholder = "Search"; search.setAttribute("aria-label", "Search");
  const back = make("button", "‹"), next = make("button", "›"), label = make("span", null, "count");
  const table = make("table"), head = make("tr"), body = make("tbody"), thead = make("thead");
  const all = Uint32Array.from({length: count}, (_, i) => i);
  let shown = all, page = 0, by = initial ?? -1, down = initial !== undefined, haystack = null;
  const text = (c, i) => { const v = c.value(i); return c.show ? c.show(v) : v === null || v === undefined ? "" : String(v); };
  function arrange() {
    const words = search.value.trim().toLowerCase();
    if (words && !haystack)
      haystack = Array.from(all, i => columns.map(c => text(c, i)).join("\u0001").toLowerCase());
    shown = words ? all.filter(i => haystack[i].includes(words)) : all.slice();
    if (by >= 0) {
      const value = columns[by].value, sign = down ? -1 : 1;
      shown.sort((a, b) => {
        const x = value(a), y = value(b);
        if (x === y) return a - b;
        if (x === null || x === undefined) return 1;
        if (y === null || y === undefined) return -1;
        return x < y ? -sign : sign;
      });
    }
    page = 0; draw();
  }
  function draw() {
    const first = page * PAGE, last = Math.min(first + PAGE, shown.length);
    body.replaceChildren(...Array.from(shown.subarray(first, last), i => {
      const tr = make("tr");
      tr.append(...columns.map(c => make("td", text(c, i), c.number ? "n" : c.show === time ? "t" : c.long ? "long" : "")));
      return tr;
    }));
    label.textContent = shown.length ? `${number(first + 1)}–${number(last)} of ${number(shown.length)}` : "none";
    back.disabled = page === 0; next.disabled = last >= shown.length;
    [...head.children].forEach((th, i) => {
      th.textContent = columns[i].name + (i === by ? (down ? " ↓" : " ↑") : "");
      th.setAttribute("aria-sort", i === by ? (down ? "descending" : "ascending") : "none");
    });
  }
  columns.forEach((c, i) => {
    const th = make("th", c.name, "sorts" + (c.number ? " n" : ""));
    th.onclick = () => { down = by === i ? !down : !!c.number; by = i; arrange(); };
    head.append(th);
  });
  let timer;
  search.oninput = () => { clearTimeout(timer); timer = setTimeout(arrange, 120); };
  back.onclick = () => { page--; draw(); };
  next.onclick = () => { page++; draw(); };
  bar.append(search, label, back, next);
  thead.append(head); table.append(thead, body); box.append(bar, table);
  arrange();
  return box;
}
const of = (data, names) => names.map(([name, at, more]) => ({name, value: i => data[i][at], ...more}));
const N = {number: true, show: number}, S = {number: true, show: size}, T = {show: time};

// A bar for each commit: between two commits there are no values. A drag zooms in.
let charts = [];
function chart(title, points, show) {
  const box = make("div", null, "chart"), css = getComputedStyle(document.documentElement);
  const ink = css.getPropertyValue("--soft").trim(), line = css.getPropertyValue("--line").trim(), accent = css.getPropertyValue("--accent").trim();
  const axis = {stroke: ink, grid: {stroke: line, width: 1}, ticks: {stroke: line, width: 1}};
  const edge = (lo, hi) => Math.max(1, (hi - lo) / 50);  // the first and the last bar are as wide as the others
  charts.push(() => new uPlot({
    width: Math.max(240, box.clientWidth), height: 180, legend: {show: false}, cursor: {drag: {x: true, y: false}, points: {show: false}},
    tzDate: t => uPlot.tzDate(new Date(t * 1000), "Etc/UTC"),
    scales: {x: {range: (_, lo, hi) => [lo - edge(lo, hi), hi + edge(lo, hi)]}, y: {range: (_, lo, hi) => [0, hi > 0 ? hi * 1.1 : 1]}},
    axes: [{...axis, space: 110, size: 60, values: "{YYYY}-{MM}-{DD}\n{HH}:{mm}:{ss}"}, {...axis, size: 80, values: (_, v) => v.map(show)}],
    series: [{}, {label: title, stroke: accent, width: 0, fill: accent, points: {show: false}, paths: uPlot.paths.bars({size: [0.6, 24, 3]})}],
  }, points, box));
  return card(title, make("p", `A bar for each write, at its time (${[...new Set(facts.zones.map(z => z[1]))].join(", ")})`, "none"), box);
}

const views = {
  Overview() {
    const f = facts.health.files, cards = make("div", null, "cards");
    const found = facts.health.findings;
    let health = make("p", "Nothing to repair.", "none");
    if (found.length) {
      health = make("table");
      for (const one of found) {
        const tr = make("tr"), run = make("td");
        run.append(make("code", one.run));
        tr.append(make("td", one.level, one.level), make("td", one.about), make("td", one.text, "text"), run);
        health.append(tr);
      }
    }
    const add = (label, value) => { const e = make("div", null, "card"); e.append(make("b", value), make("small", label)); cards.append(e); };
    for (const [label, value] of Object.entries(facts.about)) add(label, label === "newest commit" ? time(value) : value);
    add("partitions", number(facts.partitions.length));
    add("file groups", number(f.file_groups)); add("base files", size(f.base_bytes));
    add("log files", number(f.log_files) + (f.log_files ? ` (${size(f.log_bytes)})` : ""));
    add("small files", number(f.small_files)); add("old versions", size(f.old_bytes));
    add("files are listed by", facts.health.lists_files);
    return [card("Health", health), cards];
  },
  Timeline() {
    const t = facts.timeline;
    return [card(null, rows(t.length, [
      ...of(t, [["instant", 0, T]]),
      {name: "seconds", number: true, value: i => took(t[i][0], t[i][1]), show: v => v === null ? "" : v.toFixed(1)},
      ...of(t, [["action", 2], ["operation", 4], ["state", 3], ["inserted", 5, N], ["updated", 6, N], ["deleted", 7, N],
        ["files", 8, N], ["written", 9, S], ["timeline", 10]])], 0))];
  },
  Writes() {
    const done = facts.timeline.filter(e => e[4] && seconds(e[0]) !== null).reverse();
    if (!done.length) return [card(null, make("p", "No completed writes.", "none"))];
    const x = done.map(e => seconds(e[0]));
    return [
      chart("Rows changed", [x, done.map(e => e[5] + e[6] + e[7])], number),
      chart("Bytes written", [x, done.map(e => e[9])], size),
      chart("Seconds", [x, done.map(e => took(e[0], e[1]))], v => number(v)),
    ];
  },
  Files() {
    const f = facts.files, total = f.instant.length, groups = f.id.length;
    // The slices of a group follow each other, newest first: where each group begins, and the group of each slice.
    const newest = new Uint32Array(groups), group = new Uint32Array(total), all = new Uint32Array(total);
    for (let g = 0, s = 0; g < groups; g++) {
      newest[g] = s;
      for (const end = s + f.slices[g]; s < end; s++) { group[s] = g; all[s] = s; }
    }
    const show = slices => {
      const of_group = (name, key, more) => ({name, value: i => f[key][group[slices[i]]], ...more});
      const of_slice = (name, key, more) => ({name, value: i => f[key][slices[i]], ...more});
      return rows(slices.length, [
        of_group("partition", "partition", {value: i => facts.partitions[f.partition[group[slices[i]]]][0]}),
        of_group("file group", "id"), of_slice("slice", "instant", T),
        {name: "age", number: true, value: i => slices[i] - newest[group[slices[i]]], show: v => v ? `${number(v)} older` : "newest"},
        of_group("slices", "slices", N), of_slice("base file", "base", S), of_slice("log files", "logs", N),
        of_slice("log bytes", "log_bytes", S)]);
    };
    const box = card(null, show(newest));
    if (total > groups) {
      const older = make("label", null, "older"), tick = make("input");
      tick.type = "checkbox";
      tick.onchange = () => box.replaceChildren(older, show(tick.checked ? all : newest));
      older.append(tick, ` ${number(total - groups)} older slices too`);
      box.prepend(older);
    }
    return [box];
  },
  Partitions() {
    const p = facts.partitions;
    return [card(null, rows(p.length, of(p, [["partition", 0], ["file groups", 1, N], ["size", 2, S], ["log files", 3, N]])))];
  },
  Schema() {
    const s = facts.schema, c = facts.schema_changes;
    return [card("Columns", rows(s.length, [...of(s, [["column", 0], ["type", 1, {long: true}]]), {name: "may be null", value: i => s[i][2] ? "yes" : "no"}])),
      card("Changes", c.length ? rows(c.length, of(c, [["instant", 0, T], ["change", 1, {long: true}]])) : make("p", "None on the timeline.", "none"))];
  },
  Properties() {
    const p = facts.properties;
    return [card(null, rows(p.length, of(p, [["property", 0], ["value", 1, {long: true}]])))];
  },
};

let current = "Overview";
function open(name) {
  current = name; charts = [];
  document.getElementById("main").replaceChildren(...views[name]());
  charts.forEach(draw => draw());
  for (const b of document.getElementById("tabs").children) b.setAttribute("aria-selected", b.textContent === name);
}
for (const name of Object.keys(views)) {
  const b = make("button", name);
  b.setAttribute("role", "tab");
  b.onclick = () => open(name);
  document.getElementById("tabs").append(b);
}
const root = document.documentElement;
root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
document.getElementById("theme").onclick = () => { root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"; open(current); };
const asked = decodeURIComponent(location.hash.slice(1));
open(Object.hasOwn(views, asked) ? asked : "Overview");
root.dataset.ready = "yes";
})();
