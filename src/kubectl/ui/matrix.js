// The grid of volumes by nodes. Only what can be seen is in the page, and the one cell that has the keyboard; so twenty
// thousand cells cost as little as a few hundred. Row 0 is the nodes' names, column 0 the volumes'.

const ZOOMS = [
  { name: "small", width: 14, height: 16, head: 108, side: 12 },
  { name: "medium", width: 28, height: 28, head: 116, side: 22 },
  { name: "wide", width: 170, height: 44, head: 40, side: 28 },
];
// Rows and columns beyond the edge that are drawn all the same.
const BEYOND = 2;

class Matrix {
  constructor(root, pick) {
    this.root = root;
    this.pick = pick;
    this.rows = new Map();
    this.active = { row: 1, column: 1 };
    this.changed = new Set();
    this.chosenZoom = undefined;
    this.body = make("div", "body");
    this.body.setAttribute("role", "rowgroup");
    const headGroup = make("div", "group", this.rowAt(0).element);
    headGroup.setAttribute("role", "rowgroup");
    headGroup.style.display = "contents";
    root.append(headGroup, this.body);
    root.addEventListener("scroll", () => this.soon(), { passive: true });
    new ResizeObserver(() => this.view && this.layOut()).observe(root);
    root.addEventListener("keydown", (event) => this.onKey(event));
    root.addEventListener("click", (event) => this.onClick(event));
  }

  // Shows a view; the cell that has the keyboard keeps it, wherever it is now.
  show(view, changed) {
    const kept = this.view && this.namesAt(this.active);
    const hadFocus = this.root.contains(document.activeElement);
    this.view = view;
    this.changed = changed ?? new Set();
    if (kept) this.active = this.placeOf(kept.handle, kept.node, this.active);
    this.layOut();
    if (hadFocus) this.elementAt(this.active)?.focus({ preventScroll: true });
  }

  zoom(step) {
    const at = ZOOMS.indexOf(this.size) + step;
    this.chosenZoom = Math.max(0, Math.min(ZOOMS.length - 1, at));
    this.layOut();
  }

  layOut() {
    const { root, view } = this;
    const [rows, columns] = [view.rows.length, view.columns.length];
    const room = document.documentElement.clientWidth;
    this.nameWidth = Math.round(Math.max(110, Math.min(250, room * 0.34)));
    const fitting = this.nameWidth + columns * ZOOMS[2].width <= room - 60 ? 2 : 1;
    this.size = ZOOMS[this.chosenZoom ?? fitting];
    for (const zoom of ZOOMS) root.classList.toggle(zoom.name, zoom === this.size);
    const lengths = { "--cell-width": this.size.width, "--row-height": this.size.height, "--head-height": this.size.head, "--name-width": this.nameWidth };
    for (const [name, value] of Object.entries(lengths)) root.style.setProperty(name, `${value}px`);
    const width = this.nameWidth + columns * this.size.width;
    this.body.style.height = `${rows * this.size.height}px`;
    this.body.style.width = this.rowAt(0).element.style.width = `${width}px`;
    // Bars for scrolling have a height of their own.
    const bars = width > root.clientWidth ? 20 : 3;
    root.style.maxHeight = `${this.size.head + rows * this.size.height + bars}px`;
    root.setAttribute("aria-rowcount", rows + 1);
    root.setAttribute("aria-colcount", columns + 1);
    this.active = { row: Math.min(this.active.row, rows), column: Math.min(this.active.column, columns) };
    this.draw(true);
  }

  soon() {
    this.frame ??= requestAnimationFrame(() => this.draw(false));
  }

  draw(anew) {
    this.frame = undefined;
    if (!this.view) return;
    const { root, size } = this;
    const range = (scrolled, room, step, last) => {
      const first = Math.max(1, Math.floor(scrolled / step) + 1 - BEYOND);
      return [first, Math.min(last, Math.ceil((scrolled + room) / step) + BEYOND)];
    };
    const [top, bottom] = range(root.scrollTop, root.clientHeight - size.head, size.height, this.view.rows.length);
    const [left, right] = range(root.scrollLeft, root.clientWidth - this.nameWidth, size.width, this.view.columns.length);
    const indices = (first, last, kept) => {
      const wanted = new Set([0, kept]);
      for (let index = first; index <= last; index++) wanted.add(index);
      return wanted;
    };
    const rows = indices(top, bottom, this.active.row), columns = indices(left, right, this.active.column);
    for (const [index, row] of this.rows) {
      if (!rows.has(index)) {
        row.element.remove();
        this.rows.delete(index);
      }
    }
    for (const index of [...rows].sort((a, b) => a - b)) this.drawRow(index, columns, anew);
  }

  drawRow(index, columns, anew) {
    const row = this.rowAt(index);
    for (const [column, element] of row.cells) {
      if (!columns.has(column)) {
        element.remove();
        row.cells.delete(column);
      }
    }
    if (index > 0) row.element.style.top = `${(index - 1) * this.size.height}px`;
    row.element.classList.toggle("here", index === this.active.row);
    for (const column of columns) {
      let element = row.cells.get(column);
      if (!element) {
        element = make("div");
        element.place = { row: index, column };
        row.cells.set(column, element);
        row.element.append(element);
        this.fill(element);
      } else if (anew) this.fill(element);
      element.tabIndex = index === this.active.row && column === this.active.column ? 0 : -1;
      element.classList.toggle("here", index === this.active.row || column === this.active.column);
    }
  }

  rowAt(index) {
    if (!this.rows.has(index)) {
      const element = make("div", index === 0 ? "row head" : "row");
      element.setAttribute("role", "row");
      element.setAttribute("aria-rowindex", index + 1);
      this.rows.set(index, { element, cells: new Map() });
      if (index > 0) this.body.append(element);
    }
    return this.rows.get(index);
  }

  fill(element) {
    const { row, column } = element.place;
    element.setAttribute("aria-colindex", column + 1);
    if (column > 0) element.style.left = `${this.nameWidth + (column - 1) * this.size.width}px`;
    const volume = this.view.rows[row - 1], index = this.view.columns[column - 1];
    if (row === 0 && column === 0) this.fillName(element, "columnheader", "Volume", "Volume");
    else if (row === 0) this.fillNode(element, this.view.model.nodes[index]);
    else if (column === 0) this.fillVolume(element, volume);
    else this.fillCell(element, volume, index);
  }

  fillName(element, role, text, label) {
    element.className = "name";
    element.setAttribute("role", role);
    element.setAttribute("aria-label", shown(label));
    element.title = shown(label);
    element.replaceChildren(make("span", "text", text));
  }

  fillVolume(element, volume) {
    this.fillName(element, "rowheader", volume.name, [volume.name, volume.phase, volume.bytes ? size(volume.bytes) : ""].filter(Boolean).join(", "));
    const isUsual = volume.phase === "Bound" || volume.phase === "";
    if (this.size.name !== "small" && !isUsual) element.append(make("span", "tag warn", volume.phase));
    else if (this.size.name === "wide") element.append(make("span", "tag", volume.phase));
  }

  fillNode(element, node) {
    const state = !node.answered ? "does not answer" : node.problem || node.notes.length ? "has something to say" : "";
    element.className = `node${!node.answered ? " silent" : state ? " warn" : ""}`;
    element.setAttribute("role", "columnheader");
    const label = shown([node.name, state, node.bytes ? size(node.bytes) : ""].filter(Boolean).join(", "));
    element.setAttribute("aria-label", label);
    element.title = label;
    element.replaceChildren(make("span", "text", (!node.answered ? "? " : state ? "! " : "") + node.name));
  }

  fillCell(element, volume, index) {
    const { model } = this.view;
    const cell = volume.cells.get(index), node = model.nodes[index];
    const kinds = kindsAt(model, volume, index);
    const measured = cell?.copy?.bytes;
    const isDim = !this.view.isWhole && !this.view.passes(volume, index);
    const isChanged = this.changed.has(`${volume.handle}\n${node.name}`);
    const names = ["cell", ...kinds, cell?.copy && measured === undefined ? "unmeasured" : "", isDim ? "dim" : "", isChanged ? "changed" : ""];
    element.className = names.filter(Boolean).join(" ");
    element.setAttribute("role", "gridcell");
    const label = shown(`${volume.name} on ${node.name}: ${sentence(cell, node)}`);
    element.setAttribute("aria-label", label);
    element.title = label;
    if (!cell?.copy) return element.replaceChildren();
    const mark = make("i", "mark");
    const side = measured === undefined ? this.size.side / 2 : this.size.side * (measured / Math.max(1, model.largest)) ** 0.25;
    mark.style.width = mark.style.height = `${side.toFixed(1)}px`;
    if (this.size.name !== "wide") return element.replaceChildren(mark);
    const holder = cell.copy.holders[0] ? podName(cell.copy.holders[0]) : cell.copy.leftoverMounts ? "(a mount)" : "not held";
    const words = make("span", "words", make("span", "", measured === undefined ? "not yet counted" : size(measured)), make("span", "", holder));
    return element.replaceChildren(make("span", "square", mark), words);
  }

  namesAt({ row, column }) {
    return { handle: this.view.rows[row - 1]?.handle, node: this.view.model.nodes[this.view.columns[column - 1]]?.name };
  }

  // Where a volume and a node are; the place before where they are not.
  placeOf(handle, nodeName, before) {
    const row = before.row === 0 && handle === undefined ? 0 : this.view.rows.findIndex((volume) => volume.handle === handle) + 1;
    const column = nodeName === undefined ? 0 : this.view.columns.findIndex((index) => this.view.model.nodes[index].name === nodeName) + 1;
    return { row: row || (handle === undefined ? 0 : before.row), column: column || (nodeName === undefined ? 0 : before.column) };
  }

  elementAt({ row, column }) {
    return this.rows.get(row)?.cells.get(column);
  }

  // Moves the keyboard to a place, as far as there is one.
  go(row, column) {
    const within = (value, last) => Math.max(0, Math.min(last, value));
    this.active = { row: within(row, this.view.rows.length), column: within(column, this.view.columns.length) };
    this.reveal();
    this.draw(false);
    this.elementAt(this.active)?.focus({ preventScroll: true });
  }

  reveal() {
    const { root, size, active } = this;
    const shift = (scrolled, room, step, index) => {
      if (index === 0) return scrolled;
      const start = (index - 1) * step;
      return start < scrolled ? start : Math.max(scrolled, start + step - room);
    };
    root.scrollTop = shift(root.scrollTop, root.clientHeight - size.head, size.height, active.row);
    root.scrollLeft = shift(root.scrollLeft, root.clientWidth - this.nameWidth, size.width, active.column);
  }

  onKey(event) {
    if (event.altKey || event.metaKey) return;
    const { row, column } = this.active, [last, end] = [this.view.rows.length, this.view.columns.length];
    const page = Math.max(1, Math.floor((this.root.clientHeight - this.size.head) / this.size.height) - 1);
    const far = event.ctrlKey;
    const places = new Map([
      ["ArrowUp", [far ? 1 : row - 1, column]], ["ArrowDown", [far ? last : row + 1, column]],
      ["ArrowLeft", [row, far ? 1 : column - 1]], ["ArrowRight", [row, far ? end : column + 1]],
      ["Home", [far ? 1 : row, 0]], ["End", [far ? last : row, end]],
      ["PageUp", [Math.max(1, row - page), column]], ["PageDown", [row + page, column]],
    ]);
    const place = places.get(event.key);
    if (place) this.go(...place);
    else if (event.key === "Enter" || event.key === " ") this.pick(this.namesAt(this.active), true);
    else return;
    event.preventDefault();
  }

  onClick(event) {
    const element = event.target.closest(".row > *");
    if (!element?.place) return;
    this.go(element.place.row, element.place.column);
    this.pick(this.namesAt(this.active), false);
  }
}
