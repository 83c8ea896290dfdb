// From an empty page to one that can be walked on.
import { Columns, Ids, Links, openSource } from "./data.mjs";
import { Explorer } from "./explorer.mjs";
import { followKeys, followPointer, zoomBy } from "./input.mjs";
import { pngOf, svgOf } from "./layers.mjs";
import { byId, download, make, makeTheme, say, shown } from "./page.mjs";
import { makeSearch } from "./panel.mjs";
import { Stage } from "./stage.mjs";

function counts({ count, links, dim }) {
  return [`${shown(count)} nodes`, links === null ? null : `${shown(links)} links`, `dimension ${dim}`].filter(Boolean).join(" · ");
}

function describe(about) {
  document.title = `${about.title} · h2hgcn explorer`;
  byId("title").textContent = about.title;
  byId("counts").textContent = counts(about);
  if (about.layout) {
    const names = { layout: about.layout.method === "tree" ? "Layout of the tree" : "Layout", projection: "Projection" };
    byId("picture").replaceChildren(...Object.entries(names).map(([value, name]) => make("option", { value }, name)));
    byId("pictures").hidden = false;
  }
  if (about.directed_links) byId("links").querySelector("h2").textContent = "Likeliest missing links from this node";
  byId("origin").textContent = `h2hgcn ${about.version}`;
  byId("colour").replaceChildren(...about.columns.map(({ name }, place) => make("option", { value: place }, name)));
}

function setLasso(stage, on) {
  stage.lassoing = on;
  stage.scene.lasso = null;
  stage.ask();
  byId("lasso").setAttribute("aria-pressed", String(on));
  stage.root.classList.toggle("lassoing", on);
}

function connect(explorer, stage) {
  const toggleLasso = () => setLasso(stage, !stage.lassoing);
  followPointer(stage, {
    pick: (node) => explorer.choose(node),
    hover: (node, event) => explorer.hover(node, event),
    lasso: (line) => {
      explorer.lasso(line);
      setLasso(stage, false);
    },
  });
  followKeys(stage, {
    pick: (node) => explorer.choose(node),
    home: () => explorer.home(),
    search: () => byId("search").focus(),
    help: () => byId("keys").showModal(),
    lasso: toggleLasso,
    clear: () => (stage.lassoing ? setLasso(stage, false) : explorer.clear()),
  });
  const actions = {
    "zoom-in": () => zoomBy(stage, 1.25),
    "zoom-out": () => zoomBy(stage, 0.8),
    home: () => explorer.home(),
    lasso: toggleLasso,
    help: () => byId("keys").showModal(),
    "save-png": async () => download(await pngOf(stage), "embedding.png"),
    "save-svg": () => download(svgOf(stage, explorer.colours), "embedding.svg"),
    "copy-link": () => copyLink(explorer),
  };
  for (const [id, act] of Object.entries(actions)) byId(id).addEventListener("click", act);
  byId("picture").addEventListener("change", (event) => explorer.showPicture(event.target.value));
  byId("colour").addEventListener("change", (event) => explorer.colourBy(Number(event.target.value)));
  window.addEventListener("hashchange", () => explorer.restore());
}

async function copyLink(explorer) {
  history.replaceState(null, "", explorer.address());
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied");
  } catch {
    say("The link is in the address bar");
  }
}

async function complete(explorer, source, about) {
  const wanted = ["label", "radius", "degree", "prediction", "confidence"].map((name) => explorer.columns.place(name)).filter((place) => place >= 0);
  const [text, offsets] = await Promise.all([
    source.buffer("id_text"), source.buffer("id_offsets"),
    ...wanted.map((place) => explorer.columns.load(place)),
  ]);
  const ids = new Ids(text, offsets);
  const parts = about.links === null ? null : await Promise.all([source.buffer("link_offsets"), source.buffer("link_targets")]);
  explorer.complete(ids, parts && new Links(...parts));
  const label = explorer.columns.place("label");
  makeSearch(ids, (node) => explorer.columns.text(label, node) ?? "", (node) => explorer.choose(node));
}

/** Notes when the first picture is on the screen: two frames after it was asked for, one has been shown. */
function markPicture() {
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("first-picture")));
}

async function start() {
  const source = openSource();
  const about = await source.about();
  describe(about);
  const columns = new Columns(about.columns, source);
  const stage = new Stage(byId("stage"), new Float64Array(2 * about.count));
  const explorer = new Explorer(about, source, columns, stage);
  await explorer.showPicture(about.layout ? "layout" : "projection");
  makeTheme((look) => stage.setLook(look));
  await explorer.colourBy(0);
  markPicture();
  byId("status").textContent = "";
  connect(explorer, stage);
  document.documentElement.dataset.renderer = stage.renderer.name;
  await complete(explorer, source, about);
  await explorer.restore();
  document.documentElement.dataset.ready = "yes";
}

start().catch((problem) => {
  byId("status").textContent = `The embedding cannot be shown: ${problem.message}`;
  throw problem;
});
