// Asks for each look as it ends, and puts it on the page: with its age, what is missing from it, and what is new in it.

const AGAIN_AFTER_FAILURE_MS = 2000;
const NAMED_MAX = 5;
const ANNOUNCE_EVERY_MS = 10000;

const page = { model: undefined, view: undefined, kinds: new Set(), look: 0, at: undefined, everyMs: 5000, trouble: "", said: -Infinity };

const details = new Details(byId("details"), () => matrix.go(matrix.active.row, matrix.active.column));
const matrix = new Matrix(byId("matrix"), (names, takesFocus) => {
  details.open(names, takesFocus);
  details.show(page.model);
  matrix.reveal();
});
const timeline = new Timeline((handle, nodeName) => {
  const find = () => matrix.placeOf(handle, nodeName, { row: 0, column: 0 });
  let place = find();
  if (!place.row || !place.column) {
    byId("search").value = "";
    page.kinds.clear();
    filter();
    place = find();
  }
  matrix.go(place.row, place.column);
  matrix.pick({ handle, node: nodeName }, false);
});

function filter(changed) {
  if (!page.model) return;
  page.view = makeView(page.model, { words: byId("search").value, kinds: page.kinds, order: byId("order").value });
  const { rows, columns } = page.view;
  const isEmpty = rows.length === 0;
  byId("matrix").hidden = isEmpty;
  byId("nothing").hidden = !isEmpty;
  setText(byId("nothing"), page.model.volumes.length === 0 ? "There is no volume of per-node, and no copy." : "Nothing fits the search.");
  matrix.show(page.view, changed);
  timeline.show(page.view.refusals);
  for (const button of byId("kinds").children) button.setAttribute("aria-pressed", page.kinds.has(button.kind));
  const shownPart = page.view.isWhole ? "" : ` · shown: ${many(rows.length, "volume")}, ${many(columns.length, "node")}`;
  const { model } = page;
  setText(byId("summary"), `${many(model.volumes.length, "volume")} · ${many(model.nodes.length, "node")} · ${many(model.copies, "copy", "copies")} · ${size(model.bytes)}${shownPart}`);
}

function makeKinds() {
  for (const kind of KINDS) {
    const sample = make("span", `cell ${kind.key === "orphan" ? "orphan" : kind.key}`);
    if (!["trash", "refused", "unknown"].includes(kind.key)) {
      const mark = make("i", "mark");
      mark.style.width = mark.style.height = "12px";
      sample.append(mark);
    }
    sample.setAttribute("aria-hidden", "true");
    const button = make("button", "", sample, kind.word, make("b", "", "0"));
    button.type = "button";
    button.kind = kind.key;
    button.title = kind.about;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      page.kinds.has(kind.key) ? page.kinds.delete(kind.key) : page.kinds.add(kind.key);
      filter();
    });
    byId("kinds").append(button);
  }
}

// What is missing, and what nodes say of themselves: a line, and all of it behind it.
function showProblems(trouble) {
  const model = page.model;
  const silent = (model?.nodes ?? []).filter((node) => !node.answered).map((node) => node.name);
  const notes = (model?.nodes ?? []).flatMap((node) => node.notes.map((note) => `${node.name}: ${note}`));
  const lines = [...(trouble ? [trouble] : []), ...(model?.missing ?? []), ...notes];
  const key = JSON.stringify(lines);
  const box = byId("problems");
  if (box.key === key) return;
  box.key = key;
  if (lines.length === 0) return box.replaceChildren();
  const names = silent.slice(0, NAMED_MAX).join(", ") + (silent.length > NAMED_MAX ? ` and ${silent.length - NAMED_MAX} more` : "");
  const others = lines.length - silent.length - (trouble ? 1 : 0);
  const head = [
    trouble,
    silent.length && `${many(silent.length, "node does", "nodes do")} not answer: ${names}`,
    others > 0 && `${many(others, "other note")}`,
  ].filter(Boolean).join(" · ");
  const wasOpen = box.querySelector("details")?.open ?? false;
  const list = make("ul", "", ...lines.map((line) => make("li", "", line)));
  const all = make("details", "", make("summary", "", head), list);
  all.open = wasOpen;
  return box.replaceChildren(all);
}

function take(state) {
  page.look = state.look;
  page.everyMs = state.everyMs;
  if (!state.status) return trouble(`this look failed: ${state.failure}`);
  page.at = performance.now() - state.tookMs;
  const model = makeModel(state.status);
  const changed = page.model && difference(page.model, model).changed;
  page.model = model;
  for (const button of byId("kinds").children) setText(button.querySelector("b"), model.counts.get(button.kind).toLocaleString("en"));
  filter(changed);
  details.show(model);
  announce(model);
  return trouble("");
}

// Says what is new since it last said something, not too often.
function announce(model) {
  page.announced ??= model;
  if (performance.now() - page.said < ANNOUNCE_EVERY_MS) return;
  const { words } = difference(page.announced, model);
  if (!words) return;
  [page.announced, page.said] = [model, performance.now()];
  setText(byId("announce"), words);
}

function trouble(text) {
  page.trouble = text;
  showProblems(text);
  showAge();
}

function showAge() {
  const age = byId("age");
  const seconds = page.at === undefined ? 0 : (performance.now() - page.at) / 1000;
  const isLate = page.trouble !== "" || seconds * 1000 > 4 * page.everyMs + 10000;
  age.classList.toggle("late", isLate && page.at !== undefined);
  if (page.at !== undefined) setText(age, `as of ${span(seconds)} ago${isLate ? ": not live" : ""}`);
  else if (page.trouble) setText(age, "nothing was seen yet");
}

async function follow() {
  for (;;) {
    if (document.hidden) await new Promise((go) => document.addEventListener("visibilitychange", go, { once: true }));
    try {
      const answer = await fetch(`state?after=${page.look}`, { cache: "no-store", credentials: "omit" });
      if (answer.status === 200) take(await answer.json());
      else if (answer.status !== 204) throw new Error(answer.status);
    } catch (error) {
      trouble("kubectl per-node ui does not answer any more; was it ended?");
      console.debug(error);
      await new Promise((go) => setTimeout(go, AGAIN_AFTER_FAILURE_MS));
    }
  }
}

document.addEventListener("keydown", (event) => {
  const search = byId("search");
  const isTyping = event.target.closest("input, select");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.altKey && !event.metaKey) {
    search.focus();
    search.select();
    event.preventDefault();
  } else if (event.key === "Escape" && event.target === search) {
    search.value = "";
    filter();
    if (page.model) matrix.go(matrix.active.row, matrix.active.column);
  } else if (event.key === "Escape" && !isTyping) details.close();
});
byId("search").addEventListener("input", () => filter());
byId("order").addEventListener("change", () => filter());
byId("smaller").addEventListener("click", () => page.view && matrix.zoom(-1));
byId("larger").addEventListener("click", () => page.view && matrix.zoom(1));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  if (page.view) matrix.go(matrix.active.row, matrix.active.column);
});
makeKinds();
setInterval(showAge, 1000);
follow();
