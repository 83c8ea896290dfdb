// What is known of every node, column by column, each fetched when it is first wanted.
import { shown } from "./dom.mjs";

const NO_VALUE = 0xffff;

export class Columns {
  constructor(described, source) {
    this.described = described;
    this.source = source;
    this.values = [];
    this.coming = [];
  }

  place(name) {
    return this.described.findIndex((column) => column.name === name);
  }

  async load(place) {
    this.coming[place] ??= this.source.buffer(`column_${place}`);
    this.values[place] = await this.coming[place];
    return this.values[place];
  }

  /** The value of a node as a text; null if the column is not here yet. */
  text(place, node) {
    const values = this.values[place];
    if (!values) return null;
    const column = this.described[place];
    if (column.kind === "number") return shown(values[node], column.whole);
    return values[node] === NO_VALUE ? "–" : column.categories[values[node]];
  }

  /** Names and texts of the columns that are here. */
  about(node) {
    return this.described.map(({ name }, place) => [name, this.text(place, node)]).filter(([, text]) => text !== null);
  }
}
