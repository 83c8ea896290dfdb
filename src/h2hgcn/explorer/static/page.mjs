// The page: its elements, messages and theme.

// Elements out of values. Texts are set as texts: nothing that comes with the data becomes markup.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A round spot of a colour. */
export function dot(colour) {
  const spot = make("span", { class: "dot", "aria-hidden": "true" });
  spot.style.background = colour;
  return spot;
}

export const byId = (id) => document.getElementById(id);

/** Tells those who hear the page instead of seeing it. */
export function say(text) {
  byId("live").textContent = text;
}

const grouped = new Intl.NumberFormat("en");

/** A number as a person reads it. */
export function shown(value, whole = false) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (whole || Number.isInteger(value)) return grouped.format(Math.round(value));
  const size = Math.abs(value);
  return size !== 0 && (size < 0.001 || size >= 1e6) ? value.toExponential(2) : value.toFixed(size < 1 ? 3 : 2);
}

/** Hands a file to whoever looks at the page. */
export function download(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Light and dark, and the colours that a canvas needs of them.

const SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

/** The colours of the page's style, and fonts. */
function currentLook() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ground", "raised", "text", "quiet", "rule", "accent", "mark"];
  const colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return { ...colours, small: `11px ${SANS}`, normal: `13px ${SANS}`, strong: `600 14px ${SANS}` };
}

/** The button that changes it; `changed` is called whenever it changes, whoever did it. */
export function makeTheme(changed) {
  const root = document.documentElement;
  const button = byId("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const tell = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    changed(currentLook());
  };
  const kept = remembered();
  if (kept) root.dataset.theme = kept;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    tell();
  });
  dark.addEventListener("change", tell);
  tell();
}

// a page from disk, or one whose owner forbids it, may have no memory
function remembered() {
  try {
    const kept = localStorage.getItem("h2hgcn-theme");
    return kept === "light" || kept === "dark" ? kept : null;
  } catch {
    return null;
  }
}

function remember(theme) {
  try {
    localStorage.setItem("h2hgcn-theme", theme);
  } catch {
    // then it is asked for again
  }
}
