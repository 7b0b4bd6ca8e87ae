// Words, sizes and ages for people, and the one way in which text comes into the page: as text.

// Characters that are not seen, or that turn the direction of what follows, are shown as what they are: something odd.
const shown = (text) => String(text ?? "").replace(/\p{C}/gu, "\uFFFD");

// An element with a class and children, each of them an element or text.
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.map((child) => (child instanceof Node ? child : shown(child))));
  return element;
}

const byId = (id) => document.getElementById(id);

function setText(element, text) {
  const wanted = shown(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

// As the tool's tables write them.
function size(bytes) {
  if (bytes < 1024) return String(bytes);
  let value = bytes;
  for (const unit of ["Ki", "Mi", "Gi", "Ti", "Pi"]) {
    value /= 1024;
    if (value < 1023.5 || unit === "Pi") return (value < 9.95 ? value.toFixed(1) : Math.round(value)) + unit;
  }
  return String(bytes);
}

function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (large, unit, small, of) => (small ? `${large}${unit}${small}${of}` : `${large}${unit}`);
  const minutes = Math.floor(whole / 60), hours = Math.floor(whole / 3600), days = Math.floor(whole / 86400);
  if (minutes < 2) return `${whole}s`;
  if (minutes < 10) return two(minutes, "m", whole % 60, "s");
  if (hours < 3) return `${minutes}m`;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  if (days < 8) return two(days, "d", hours % 24, "h");
  return days < 730 ? `${days}d` : two(Math.floor(days / 365), "y", days % 365, "d");
}

// Seconds from `then` to `now`, both as the node wrote them; nothing where either is no time.
function secondsBetween(then, now) {
  const seconds = (Date.parse(now) - Date.parse(then)) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}

const many = (count, one, more) => `${count.toLocaleString("en")} ${count === 1 ? one : (more ?? one + "s")}`;
