// Light and dark, and the colours that a canvas needs of them.
import { byId } from "./dom.mjs";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
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
