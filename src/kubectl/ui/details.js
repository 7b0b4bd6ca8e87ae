// What is known of one cell, one volume or one node, in words.

// One sentence: for who hears the table, and for the pointer.
function sentence(cell, node) {
  const parts = [];
  if (cell?.copy) {
    const { bytes, holders, leftoverMounts } = cell.copy;
    parts.push(bytes === undefined ? "a copy that is not yet counted" : size(bytes));
    if (holders.length) parts.push(`held by ${holders.map((one) => podName(one) + ago(" for ", one.since, node.at)).join(", ")}`);
    else parts.push(leftoverMounts ? "held by a mount that is no pod's" : "not held");
    if (cell.kinds.has("orphan")) parts.push("no PersistentVolume names it");
  }
  if (cell?.trash.length) parts.push(`${cell.trash.length} in the trash`);
  for (const refusal of cell?.refusals.slice(0, 1) ?? []) parts.push(`refused ${podName(refusal)} ${many(refusal.count, "time")}`);
  if (!node.answered) parts.push("the node does not answer");
  return parts.join("; ") || "no copy";
}

function ago(before, then, now, after = "") {
  const seconds = then === undefined ? undefined : secondsBetween(then, now);
  return seconds === undefined ? "" : before + span(seconds) + after;
}

// A removed copy: kept for a time, or on its way out.
function removed(entry) {
  if (entry.leftSeconds === undefined) return `${entry.id}, on its way out`;
  const bytes = entry.bytes === undefined ? "" : `, ${size(entry.bytes)}`;
  return `${entry.id}${bytes}, removed ${entry.removedAt}, kept for ${span(entry.leftSeconds)} more`;
}

// A list of terms, each with one line or several; what is empty is left out.
function terms(pairs) {
  const list = make("dl");
  for (const [term, text] of pairs) {
    const lines = [text].flat().filter((line) => line !== undefined && line !== "");
    if (lines.length) list.append(make("dt", "", term), make("dd", "", ...lines.map((line) => make("div", "", line))));
  }
  return list;
}

class Details {
  constructor(section, back) {
    this.section = section;
    this.names = undefined;
    this.back = back;
    byId("close").addEventListener("click", () => this.close());
    section.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  open(names, takesFocus) {
    this.names = names;
    this.section.hidden = false;
    document.body.classList.add("picked");
    if (takesFocus) byId("details-head").focus();
  }

  close() {
    if (this.section.hidden) return;
    this.section.hidden = true;
    document.body.classList.remove("picked");
    this.names = undefined;
    this.back();
  }

  // Shows what `names` stands for in `model` now.
  show(model) {
    if (!this.names || !model) return;
    const { handle, node: nodeName } = this.names;
    const volume = model.volumes.find((one) => one.handle === handle);
    const index = model.nodes.findIndex((one) => one.name === nodeName);
    const node = model.nodes[index];
    if (handle !== undefined && nodeName !== undefined) this.showCell(volume, node, volume?.cells.get(index));
    else if (handle !== undefined) this.showVolume(volume, model);
    else if (nodeName !== undefined) this.showNode(node);
    else this.fill("The cluster", terms([["Volumes", model.volumes.length], ["Nodes", model.nodes.length], ["Bytes", size(model.bytes)]]));
  }

  fill(head, ...children) {
    setText(byId("details-head"), head);
    byId("details-body").replaceChildren(...children);
  }

  showCell(volume, node, cell) {
    const head = `${volume?.name ?? this.names.handle} on ${node?.name ?? this.names.node}`;
    if (!volume || !node) return this.fill(head, make("p", "", "It is no longer there."));
    const copy = cell?.copy;
    const holders = copy?.holders.map((one) => podName(one) + (one.readonly ? " (read-only)" : "") + ago(", for ", one.since, node.at));
    const since = copy?.holders.map((one) => one.since).filter(Boolean).sort()[0];
    const refused = cell?.refusals[0];
    return this.fill(head, terms([
      ["Handle", volume.handle],
      ["Node", node.name],
      ["State", sentence(cell, node)],
      ["Phase", volume.phase],
      ["Claim", volume.claims],
      ["Size", copy && (copy.bytes === undefined ? "not yet counted" : `${size(copy.bytes)} (${copy.bytes.toLocaleString("en")} bytes)`)],
      ["Inodes", copy?.inodes?.toLocaleString("en")],
      ["Counted", copy && ago("", copy.measuredAt, node.at, " ago")],
      ["Holder", holders],
      ["Since", since],
      ["Other mounts", copy?.leftoverMounts || undefined],
      ["In the trash", cell?.trash.map(removed)],
      ["Last refusal", refused && [`${podName(refused)}, ${many(refused.count, "time")}${ago(", last ", refused.last, node.at, " ago")}`, refused.message]],
      ["Node's word", node.problem],
    ]));
  }

  showVolume(volume, model) {
    if (!volume) return this.fill(this.names.handle, make("p", "", "It is no longer there."));
    const cells = [...volume.cells.values()];
    const holding = cells.filter((cell) => cell.kinds.has("held")).map((cell) => `${model.nodes[cell.node].name}: ${podName(cell.copy.holders[0])}`);
    const more = holding.length > 20 ? [`and ${holding.length - 20} more`] : [];
    return this.fill(volume.name, terms([
      ["Handle", volume.handle],
      ["Volumes", volume.objects.length ? volume.objects.map((object) => `${object.name}: ${object.phase}`) : "none names this handle"],
      ["Claims", volume.objects.flatMap((object) => (object.claim ? [`${object.claim.namespace}/${object.claim.name}: ${object.claim.phase ?? "not known"}`] : []))],
      ["Copies", many(cells.filter((cell) => cell.copy).length, "node")],
      ["Size", size(volume.bytes)],
      ["Held on", [...holding.slice(0, 20), ...more]],
      ["Refusals", cells.reduce((sum, cell) => sum + cell.refusals.length, 0) || undefined],
    ]));
  }

  showNode(node) {
    if (!node) return this.fill(this.names.node, make("p", "", "It is no longer there."));
    const told = node.told[0], store = told.store;
    const free = store && `${size(store.availableBytes)} of ${size(store.totalBytes)} free, ${store.availableInodes.toLocaleString("en")} inodes free`;
    return this.fill(node.name, terms([
      ["Plugin", node.told.map((one) => `${one.pod}${one.ready ? "" : " (not ready)"}`)],
      ["Version", told.version],
      ["Missing", node.problem],
      ["It says", node.notes],
      ["Copies", node.answered ? `${told.copies.toLocaleString("en")}, ${size(node.bytes)}` : "not known"],
      ["Trash", node.answered ? told.trash : undefined],
      ["Store", free],
    ]));
  }
}
