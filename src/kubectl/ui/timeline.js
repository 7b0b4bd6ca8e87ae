// The refusals of the last hour: how many pods were being refused in each minute, and each of them as a line in time.

const MINUTES = 60;
const LANES_FEW = 5;
const LANES_MAX = 200;

class Timeline {
  constructor(go) {
    this.go = go;
    this.hasAll = false;
    this.refusals = [];
    byId("more").addEventListener("click", () => {
      this.hasAll = !this.hasAll;
      this.draw();
    });
  }

  show(refusals) {
    this.refusals = refusals;
    this.draw();
  }

  draw() {
    const { refusals } = this;
    byId("refusals").classList.toggle("none", refusals.length === 0);
    setText(byId("refusals-head"), refusals.length ? `Refusals of the last hour: ${many(refusals.length, "pod")}` : "No refusals in the last hour");
    byId("strip").hidden = refusals.length === 0;
    this.drawStrip();
    const lanes = refusals.slice(0, this.hasAll ? LANES_MAX : LANES_FEW).map((refusal) => this.lane(refusal));
    const lanesBefore = byId("lanes"), at = [...lanesBefore.children].findIndex((lane) => lane.contains(document.activeElement));
    lanesBefore.replaceChildren(...lanes);
    if (at >= 0) lanesBefore.children[Math.min(at, lanes.length - 1)]?.firstChild.focus({ preventScroll: true });
    const more = byId("more");
    more.hidden = refusals.length <= LANES_FEW;
    more.setAttribute("aria-expanded", this.hasAll);
    setText(more, this.hasAll ? "Show the latest alone" : `Show ${Math.min(refusals.length, LANES_MAX)} of ${refusals.length}`);
  }

  drawStrip() {
    const minutes = new Array(MINUTES).fill(0);
    const minuteOf = (secondsAgo) => Math.max(0, Math.min(MINUTES - 1, MINUTES - 1 - Math.floor(secondsAgo / 60)));
    for (const { firstAgo, lastAgo } of this.refusals) {
      for (let at = minuteOf(firstAgo); at <= minuteOf(lastAgo); at++) minutes[at] += 1;
    }
    const most = Math.max(...minutes), busiest = MINUTES - minutes.indexOf(most);
    const strip = byId("strip");
    while (strip.children.length < MINUTES) strip.append(make("i"));
    minutes.forEach((count, at) => (strip.children[at].style.height = `${(100 * count) / Math.max(1, most)}%`));
    strip.setAttribute("aria-label", most ? `At most ${many(most, "pod")} refused in one minute, ${many(busiest, "minute")} ago` : "");
    strip.title = strip.getAttribute("aria-label");
  }

  lane(refusal) {
    const { volume, nodeName, firstAgo, lastAgo, message } = refusal;
    const text = `${podName(refusal)} on ${nodeName}: ${volume.name}, ${many(refusal.count, "time")}, last ${span(lastAgo)} ago`;
    const bar = make("i"), hour = MINUTES * 60;
    const percent = (seconds) => 100 * (1 - Math.min(hour, seconds) / hour);
    bar.style.left = `min(${percent(firstAgo).toFixed(2)}%, calc(100% - 5px))`;
    bar.style.width = `${(percent(lastAgo) - percent(firstAgo)).toFixed(2)}%`;
    const track = make("span", "span", bar);
    track.setAttribute("aria-hidden", "true");
    const button = make("button", "", make("span", "text", text), track);
    button.type = "button";
    button.title = shown(message);
    button.addEventListener("click", () => this.go(volume.handle, nodeName));
    return make("li", "", button);
  }
}
