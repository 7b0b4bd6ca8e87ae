// What one look at the cluster says, as rows, columns and cells; which of them a search leaves; what is new in it.
// Names of the cluster are keys of Maps alone, so that none of them can be a word of the language.

const KINDS = [
  { key: "held", word: "held", about: "A pod holds the copy" },
  { key: "free", word: "not held", about: "A copy that no pod holds" },
  { key: "stuck", word: "only mounted", about: "No pod has the copy, and a mount that is no pod's keeps it" },
  { key: "orphan", word: "orphan", about: "No PersistentVolume names the handle" },
  { key: "trash", word: "in the trash", about: "A removed copy that is still there" },
  { key: "refused", word: "refused", about: "A pod was refused in the last hour" },
  { key: "unknown", word: "not known", about: "The node does not answer" },
];
const NO_KINDS = new Set();
const UNKNOWN = new Set(["unknown"]);

const podName = (one) => (one.namespace && one.pod ? `${one.namespace}/${one.pod}` : (one.uid ?? one.target ?? one.reason ?? ""));

function makeModel(status) {
  const nodes = [...nodesOf(status).values()];
  const at = new Map(nodes.map((node, index) => [node.name, index]));
  const volumes = new Map();
  const rowOf = (handle) => {
    if (!volumes.has(handle)) volumes.set(handle, newVolume({ handle, persistentVolumes: [], orphan: true, copies: [], refusals: [] }));
    return volumes.get(handle);
  };
  const model = { nodes, refusals: [], missing: status.missing, largest: 0, bytes: 0 };
  for (const told of status.volumes) {
    const volume = newVolume(told);
    volumes.set(told.handle, volume);
    for (const copy of told.copies) {
      const cell = cellOf(volume, at, copy.node);
      cell.copy = copy;
      volume.bytes += copy.bytes ?? 0;
      nodes[cell.node].bytes += copy.bytes ?? 0;
      model.largest = Math.max(model.largest, copy.bytes ?? 0);
    }
    for (const refusal of told.refusals) {
      const cell = cellOf(volume, at, refusal.node);
      cell.refusals.push(refusal);
      model.refusals.push(placed(refusal, volume, nodes[cell.node]));
    }
    model.bytes += volume.bytes;
  }
  for (const entry of status.trash) cellOf(rowOf(entry.handle), at, entry.node).trash.push(entry);
  model.volumes = [...volumes.values()];
  model.refusals.sort((a, b) => a.lastAgo - b.lastAgo);
  model.counts = count(model);
  return model;
}

// One column for each node, also where two pods of the plugin are on it.
function nodesOf(status) {
  const nodes = new Map();
  for (const told of status.nodes) {
    const before = nodes.get(told.node);
    const node = before ?? { name: told.node, told: [], bytes: 0, notes: [], text: told.node.toLowerCase() };
    node.told.push(told);
    node.notes.push(...told.notes);
    node.answered = node.answered || told.version !== undefined;
    node.at = node.at ?? told.at;
    node.problem = node.problem ?? told.problem;
    if (told.stuck) node.notes.push(`${many(told.stuck, "removal")} failed at the latest pass`);
    if (told.waitingFor) node.notes.push(`removals wait for a person (${told.waitingFor}): kubectl per-node confirm --show`);
    nodes.set(told.node, node);
  }
  return nodes;
}

function newVolume(told) {
  const objects = told.persistentVolumes;
  const name = objects.map((object) => object.name).join(", ") || told.handle || "(no handle)";
  const phases = [...new Set(objects.map((object) => object.phase))].join(", ");
  const claims = objects.flatMap((object) => (object.claim ? [`${object.claim.namespace}/${object.claim.name}`] : []));
  const phase = phases || (told.orphan && told.handle ? "Orphan" : "");
  const text = [name, told.handle, phase, ...claims].join(" ").toLowerCase();
  return { name, handle: told.handle, phase, claims, objects, orphan: told.orphan === true, bytes: 0, cells: new Map(), text };
}

function cellOf(volume, at, nodeName) {
  const node = at.get(nodeName);
  if (!volume.cells.has(node)) volume.cells.set(node, { node, trash: [], refusals: [], copy: undefined });
  return volume.cells.get(node);
}

// A refusal with its times as seconds before its own node's now, so that no two clocks are compared.
function placed(refusal, volume, node) {
  const ago = (then) => secondsBetween(then, node.at) ?? 0;
  const text = [volume.text, node.text, podName(refusal)].join(" ").toLowerCase();
  return { ...refusal, volume, nodeName: node.name, firstAgo: ago(refusal.first), lastAgo: ago(refusal.last), text };
}

function kindsOf(volume, cell) {
  const kinds = new Set();
  if (cell.copy) {
    kinds.add(cell.copy.holders.length ? "held" : cell.copy.leftoverMounts ? "stuck" : "free");
    if (volume.orphan) kinds.add("orphan");
  }
  if (cell.trash.length) kinds.add("trash");
  if (cell.refusals.length) kinds.add("refused");
  return kinds;
}

function count(model) {
  const counts = new Map(KINDS.map((kind) => [kind.key, 0]));
  model.copies = 0;
  for (const volume of model.volumes) {
    for (const cell of volume.cells.values()) {
      cell.kinds = kindsOf(volume, cell);
      const holders = cell.copy?.holders ?? [];
      cell.text = [...holders, ...cell.refusals].map(podName).join(" ").toLowerCase();
      cell.mark = [...cell.kinds, ...holders.map((one) => one.uid ?? one.target), ...cell.refusals.map((one) => one.count), cell.trash.length].join(" ");
      for (const kind of cell.kinds) counts.set(kind, counts.get(kind) + 1);
      model.copies += cell.copy ? 1 : 0;
    }
  }
  counts.set("unknown", model.nodes.filter((node) => !node.answered).length);
  return counts;
}

// What a cell is, also one where nothing is.
function kindsAt(model, volume, index) {
  const kinds = volume.cells.get(index)?.kinds ?? NO_KINDS;
  return kinds.size === 0 && !model.nodes[index].answered ? UNKNOWN : kinds;
}

// The rows and columns that a search leaves: those with a cell that fits each word of it, and one of the kinds.
function makeView(model, { words, kinds, order }) {
  const tokens = words.toLowerCase().split(/\s+/).filter(Boolean);
  const columns = model.nodes.map((node) => tokens.map((token) => node.text.includes(token)));
  const rows = [], used = new Set();
  const passes = (volume, index) => {
    const cell = volume.cells.get(index);
    const fits = (token, at) => volume.fits[at] || columns[index][at] || (cell?.text.includes(token) ?? false);
    if (!tokens.every(fits)) return false;
    return kinds.size === 0 || [...kindsAt(model, volume, index)].some((kind) => kinds.has(kind));
  };
  for (const volume of model.volumes) {
    volume.fits = tokens.map((token) => volume.text.includes(token));
    let isShown = model.nodes.length === 0 && volume.fits.every(Boolean);
    for (let index = 0; index < model.nodes.length; index++) {
      if (passes(volume, index)) {
        isShown = true;
        used.add(index);
      }
    }
    if (isShown) rows.push(volume);
  }
  if (order === "size") rows.sort((a, b) => b.bytes - a.bytes);
  const isWhole = tokens.length === 0 && kinds.size === 0;
  const all = model.nodes.map((_, index) => index);
  const refusals = model.refusals.filter((one) => tokens.every((token) => one.text.includes(token)));
  return { model, rows: isWhole && order === "name" ? model.volumes : rows, columns: isWhole ? all : all.filter((index) => used.has(index)), passes, isWhole, refusals };
}

// What is new, in words, and which cells it is.
function difference(before, after) {
  const cells = (model) => {
    const marks = new Map();
    for (const volume of model.volumes) {
      for (const cell of volume.cells.values()) marks.set(`${volume.handle}\n${model.nodes[cell.node].name}`, cell);
    }
    return marks;
  };
  const [old, now] = [cells(before), cells(after)];
  const changed = new Set([...now].filter(([key, cell]) => old.get(key)?.mark !== cell.mark).map(([key]) => key));
  const has = (cell) => (cell?.copy ? 1 : 0);
  const made = [...now].filter(([key, cell]) => has(cell) && !has(old.get(key))).length;
  const gone = [...old].filter(([key, cell]) => has(cell) && !has(now.get(key))).length;
  const silent = (model) => new Set(model.nodes.filter((node) => !node.answered).map((node) => node.name));
  const [were, are] = [silent(before), silent(after)];
  const lost = [...are].filter((name) => !were.has(name)), back = [...were].filter((name) => !are.has(name));
  const held = after.counts.get("held") - before.counts.get("held");
  const refused = after.refusals.length - before.refusals.length;
  const words = [
    made && `${many(made, "new copy", "new copies")}`,
    gone && `${many(gone, "copy", "copies")} gone`,
    held && `${Math.abs(held)} ${held > 0 ? "more" : "fewer"} held`,
    refused > 0 && `${many(refused, "new refusal")}`,
    lost.length && `${lost.slice(0, 3).join(", ")}${lost.length > 3 ? " and others" : ""} does not answer`,
    back.length && `${back.slice(0, 3).join(", ")}${back.length > 3 ? " and others" : ""} answers again`,
  ];
  return { changed, words: words.filter(Boolean).join("; ") };
}
