// The four columns: what each search found, which of that is true, and what it missed.

const SEARCHES = {hamming: ["NN_b", "Hamming"], asymmetric: ["NN_a", "asymmetric"], reconstruction: ["NN_e", "reconstruction"], exact: ["Exact", "original vectors"]};
const LETTERS = {hamming: "b", asymmetric: "a", reconstruction: "e"};

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);  // text is text: nothing of an item is ever read as markup
  return made;
}

const shownNumber = value => Number.isInteger(value) ? String(value) : value.toPrecision(3);

function entry(id, answer, parts, about) {
  const item = answer.items[id], made = element("button", {type: "button", class: "entry " + (about.kind || ""), "data-id": id});
  made.append(element("span", {class: "rank"}, String(about.rank)), element("span", {class: "said clamp", dir: "auto"}, item.text || "(no text)"));
  const meta = element("span", {class: "meta"});
  if (about.distance !== undefined) meta.append(element("span", {title: "distance"}, shownNumber(about.distance)));
  meta.append(...about.tags);
  made.append(meta, drawStrip(item.code, parts, answer.query.code));
  return element("li", {}, made);
}

function columnOf(method, answer, parts) {
  const [name, long] = SEARCHES[method], column = answer.columns[method], truth = answer.columns.exact.ids || null;
  const made = element("section", {class: "column", id: "column-" + method, "data-method": method, "aria-label": `${name}, ${long}`});
  const head = element("header", {}, element("h3", {}, name + " ", element("small", {}, long)));
  made.append(head);
  if (column.why !== undefined) {
    made.append(element("p", {class: "why"}, column.why));
    return made;
  }
  const list = element("ol", {});
  column.ids.forEach((id, i) => {
    const about = {rank: i + 1, distance: column.distances[i], tags: []};
    if (method === "exact") {
      for (const [other, letter] of Object.entries(LETTERS)) {
        const ids = answer.columns[other].ids;
        if (!ids) continue;
        const found = ids.includes(id), words = `${SEARCHES[other][0]} ${found ? "found it" : "missed it"}`;
        about.tags.push(element("span", {class: "chip " + (found ? "found" : "lost"), title: words, role: "img", "aria-label": words}, letter + (found ? "" : " ✕")));
      }
    } else if (truth) {
      const place = truth.indexOf(id);
      about.kind = place < 0 ? "false" : "true";
      about.tags.push(place < 0 ? element("span", {class: "tag-false"}, `✕ not in the true ${truth.length}`) : element("span", {class: "tag-true"}, `true #${place + 1}`));
    }
    list.append(entry(id, answer, parts, about));
  });
  const score = element("p", {class: "score"});
  if (method === "exact") score.append(`the true ${column.ids.length} nearest`);
  else if (truth) score.append(element("b", {}, String(column.ids.filter(id => truth.includes(id)).length)), ` of the true ${truth.length}`);
  head.append(score);
  made.append(list);
  const missed = method === "exact" || !truth ? [] : truth.filter(id => !column.ids.includes(id));
  if (missed.length) {
    made.append(element("h4", {}, `Missed: ${missed.length}`));
    made.append(element("ul", {class: "missed"}, ...missed.map(id =>
      entry(id, answer, parts, {rank: "✕", tags: [element("span", {class: "tag-false"}, `true #${truth.indexOf(id) + 1}`)]}))));
  }
  return made;
}

// Arrows move through the entries of a column, and to the same place of the next.
function moveByKeys(event) {
  const step = {ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0]}[event.key];
  const from = event.target.closest(".entry");
  if (!step || !from) return;
  const lists = Array.from(document.querySelectorAll(".column"), column => Array.from(column.querySelectorAll(".entry"))).filter(list => list.length);
  const across = lists.findIndex(list => list.includes(from)), down = lists[across].indexOf(from);
  const list = lists[Math.min(Math.max(across + step[0], 0), lists.length - 1)];
  event.preventDefault();
  list[Math.min(Math.max(down + step[1], 0), list.length - 1)].focus();
}
