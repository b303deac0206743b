"""The page's style and its few lines of script."""

CSS = """
:root { color-scheme: light dark;
  --ink: #22272e; --soft: #5d6672; --paper: #fbfaf7; --panel: #f1f0eb; --line: #d6d4cc; --accent: #2f5f8a;
  --good: #2f6f2f; --bad: #a8323c; --warn: #8a5a00; --del: #f7dfe0; --ins: #dff0dc; --del2: #eeb4b7; --ins2: #aedba7;
  --c1: #2f5f8a; --c2: #b3541e; --c3: #2f7d5b; --c4: #8a3f8f; --c5: #7a6a00; --c6: #555; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #d3d9e0; --soft: #939dab; --paper: #14171c; --panel: #1c2128; --line: #343b45; --accent: #8db4d8;
  --good: #9ccb8c; --bad: #e58a90; --warn: #dfb374; --del: #3a2226; --ins: #1e3324; --del2: #74333b; --ins2: #2f6b3c;
  --c1: #8db4d8; --c2: #e8a06c; --c3: #7fc9a4; --c4: #d09ad6; --c5: #d8c65a; --c6: #aaa; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 2rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.05rem; font-weight: 600; margin: 0; color: var(--soft); }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .6rem; padding-top: .8rem; border-top: 1px solid var(--line); }
h3 { font-size: .95rem; margin: .4rem 0; color: var(--soft); font-weight: 600; }
p { margin: .35rem 0; } a { color: inherit; text-decoration-color: var(--line); }
.big { font-size: 1.5rem; margin: .4rem 0 0; }
.big b { font-size: 3rem; color: var(--accent); letter-spacing: -.02em; }
.big small { font-size: 1.1rem; color: var(--soft); } .second { font-size: 1.1rem; margin-bottom: .9rem; }
.note { color: var(--soft); font-size: .88rem; max-width: 62rem; }
nav { margin-top: 1rem; font-size: .88rem; } nav a { margin-right: 1.1rem; }
.badge { display: inline-block; padding: 0 .5em; border: 1px solid currentColor; border-radius: .3em;
  font-size: .85em; }
.badge.measured { color: var(--good); } .badge.modelled { color: var(--warn); }
.scroll { overflow-x: auto; }
.pair { display: flex; flex-wrap: wrap; gap: 1rem 2rem; } .pair > * { flex: 1 1 22rem; min-width: 0; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; white-space: nowrap; vertical-align: bottom; }
.num { text-align: right; white-space: nowrap; } tbody th { font-weight: 600; white-space: nowrap; }
.funnel .wide { width: 38%; min-width: 14rem; vertical-align: middle; }
.bar { display: flex; height: 1rem; } .bar.small { display: inline-flex; width: 4.5rem; height: .6rem;
  background: var(--panel); } .part { display: block; min-width: 1px; }
.part.promoted { background: var(--c1); } .part.pruned { background: var(--line); }
.part.champion { background: var(--c3); }
.part.rejected { background: var(--c2); } .part.set-aside { background: var(--c5); }
svg { width: 100%; max-width: 44rem; height: auto; display: block; } svg text { fill: var(--soft); font-size: 12px; }
.grid { stroke: var(--line); stroke-width: .7; } .axis { stroke: var(--soft); } path { fill: none; }
.best { stroke: var(--c1); stroke-width: 2.2; } .dot { fill: var(--soft); opacity: .45; }
.level { stroke: var(--c2); stroke-dasharray: 5 4; stroke-width: 1.3; } svg .level-name { fill: var(--c2); }
svg .star { fill: var(--c3); font-size: 17px; } .roofline { stroke: var(--ink); stroke-width: 1.6; }
.roof-low { stroke: var(--soft); stroke-dasharray: 3 3; }
.s1 { --m: var(--c1); } .s2 { --m: var(--c2); } .s3 { --m: var(--c3); } .s4 { --m: var(--c4); }
.s5 { --m: var(--c5); }
.s6 { --m: var(--c6); } .stem { stroke: var(--m); opacity: .5; } .full { fill: var(--m); }
.open { fill: var(--paper); stroke: var(--m); stroke-width: 1.8; } svg .mark { fill: var(--m); }
.mark { color: var(--m); }
.roof { max-width: 44rem; } .legend { list-style: none; padding: 0; margin: .2rem 0; font-size: .88rem; }
.sortable th { cursor: default; } .js .sortable th { cursor: pointer; }
.sortable th[aria-sort=ascending]::after { content: " ↑"; }
.sortable th[aria-sort=descending]::after { content: " ↓"; }
#candidates { font-size: .8rem; width: 100%; }
#candidates th, #candidates td { padding-right: .55rem; }
.env > :first-child { flex: 2 1 34rem; }
 .summary { min-width: 10rem; } .why { min-width: 12rem; color: var(--soft); }
.state { white-space: nowrap; } td.champion, tr.champion td:first-child { color: var(--good); font-weight: 600; }
td.rejected { color: var(--bad); } td.set-aside { color: var(--warn); } tr:target { background: var(--panel); }
.tree, .tree ul { list-style: none; margin: 0; padding-left: 0; font-size: .9rem; }
.tree ul { margin-left: .45rem; padding-left: 1rem; border-left: 1px solid var(--line); }
.tree li { position: relative; padding: .1rem 0; }
.tree ul > li::before { content: ""; position: absolute; left: -1rem;
  top: .85rem; width: .75rem; border-top: 1px solid var(--line); }
.node { white-space: nowrap; } .node.rejected, .node.pruned { color: var(--soft); }
.by { color: var(--soft); font-size: .85em; }
.node.on-line { background: var(--panel); padding: .1rem .4rem; border-radius: .3rem; color: var(--ink); }
.node.champion a { color: var(--good); font-weight: 700; } summary { cursor: pointer; color: var(--soft); }
.diff { width: 100%; table-layout: fixed;
  font: 12px/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.diff td { border: 0; padding: 0 .4rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.diff th:first-child, .diff th { padding-bottom: .4rem; white-space: normal; }
.diff .no { width: 3.6rem; text-align: right; color: var(--soft); user-select: none; white-space: nowrap; }
.diff td.del { background: var(--del); } .diff td.ins { background: var(--ins); }
.diff td.none { background: var(--panel); }
.diff del, .diff ins { text-decoration: none; border-radius: 2px; } .diff del { background: var(--del2); }
.diff ins { background: var(--ins2); } .skip td { color: var(--soft); background: var(--panel); text-align: center; }
.diff col.no { width: 3.6rem; }
pre { background: var(--panel); padding: .8rem; overflow-x: auto; font-size: 12px; line-height: 1.45; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; font-size: .88rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: 1rem; } dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; } }
@media print { body { max-width: none; } h2 { break-after: avoid; } svg, tr { break-inside: avoid; } }
"""

SCRIPT = """
document.documentElement.classList.add("js");
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const key = (row, i) => { const c = row.cells[i], k = c.dataset.key ?? c.textContent, n = Number(k);
    return k === "" || Number.isNaN(n) ? k : n; };
  const sort = (i) => {
    const down = heads[i].getAttribute("aria-sort") === "ascending" ||
      (!heads[i].hasAttribute("aria-sort") && heads[i].classList.contains("num"));
    for (const h of heads) h.removeAttribute("aria-sort");
    heads[i].setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((r) => [key(r, i), r]);
    rows.sort(([a], [b]) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
    if (down) rows.reverse();
    body.append(...rows.map(([, r]) => r));
  };
  heads.forEach((h, i) => { h.tabIndex = 0; h.addEventListener("click", () => sort(i));
    h.addEventListener("keydown", (e) => { if (e.key === "Enter") sort(i); }); });
  table.dataset.rows = body.rows.length;
}
"""
