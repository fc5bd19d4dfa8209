// Drawings: the bits of codes, a vector against what its code rebuilds, recall by bytes.

const MOST_UNITS = 1024;  // of a code that are drawn

function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// The units of a code: {part, value, bits}, where codes are hexadecimal.
function unitsOf(code, parts) {
  const bits = Array.from(code, digit => parseInt(digit, 16).toString(2).padStart(4, "0")).join("");
  const units = [];
  for (const part of parts)
    for (let i = 0; i < part.count; i++) {
      const at = part.first + i * part.bits;
      units.push({part, value: bits.slice(at, at + part.bits)});
    }
  return units;
}

// How many units of each part differ: [{part, differ}].
function differing(code, other, parts) {
  const [one, two] = [unitsOf(code, parts), unitsOf(other, parts)];
  return parts.map(part => ({part, differ: one.filter((unit, i) => unit.part === part && unit.value !== two[i].value).length}));
}

const square = (x, y, w, h) => `M${x} ${y}h${w}v${h}h${-w}z`;

// The code drawn unit by unit; those that differ from the other code are lit.
function drawCode(code, parts, other, words) {
  const units = unitsOf(code, parts).slice(0, MOST_UNITS), against = other ? unitsOf(other, parts) : null;
  const step = 14, across = (units.length > 256 ? 64 : 32) * step, paths = {on: "", off: "", lit: "", "lit-off": ""}, digits = [];
  let x = 0, y = 0, last = null;
  units.forEach((unit, i) => {
    const wide = unit.part.bits === 1 ? step : unit.part.bits === 4 ? 1.5 * step : 3 * step;
    if (last && unit.part !== last) x += step / 2;
    if (x + wide > across + 0.1) { x = 0; y += step + 2; }
    const lit = against !== null && against[i].value !== unit.value;
    const on = unit.part.bits === 1 && unit.value === "1";
    paths[lit ? on ? "lit" : "lit-off" : on ? "on" : "off"] += square(x + 0.5, y + 0.5, wide - 2, step - 1);
    if (unit.part.bits > 1) {
      const text = svg("text", {x: x + wide / 2 - 0.5, y: y + step - 4, class: lit ? "digit lit" : "digit"});
      text.textContent = parseInt(unit.value, 2).toString(16);
      digits.push(text);
    }
    x += wide;
    last = unit.part;
  });
  const drawn = svg("svg", {viewBox: `0 0 ${across} ${y + step + 1}`, width: across, role: "img", "aria-label": words});
  for (const [name, path] of Object.entries(paths)) if (path) drawn.append(svg("path", {d: path, class: name}));
  drawn.append(...digits);
  return drawn;
}

// A code as a strip: where it differs it is lit.
function drawStrip(code, parts, query) {
  const one = unitsOf(code, parts), two = unitsOf(query, parts);
  let lit = "", rest = "";
  one.forEach((unit, i) => {
    if (unit.value !== two[i].value) lit += square(i, 0, 0.8, 6);
    else rest += square(i, 2, 0.8, 2);
  });
  return svg("svg", {viewBox: `0 0 ${one.length} 6`, preserveAspectRatio: "none", "aria-hidden": "true"},
    svg("path", {d: rest, class: "off"}), svg("path", {d: lit, class: "lit"}));
}

// Coordinates of a vector as bars, and what its code rebuilds as lines over them.
function drawVectors(original, rebuilt, words) {
  const n = rebuilt.length, wide = 420, high = 160, step = wide / n, largest = largestOf(original, rebuilt);
  const drawn = svg("svg", {viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": words});
  const y = value => high / 2 - value / largest * (high / 2 - 4);
  drawn.append(svg("path", {d: `M0 ${high / 2}h${wide}`, class: "axis"}));
  if (original) drawn.append(svg("path", {class: "was",
    d: original.map((value, i) => square(i * step, Math.min(y(value), high / 2), 0.8 * step, Math.abs(y(value) - high / 2))).join("")}));
  drawn.append(svg("path", {class: "now", d: rebuilt.map((value, i) => `M${i * step} ${y(value)}h${0.8 * step}`).join("")}));
  return drawn;
}

// Every coordinate: the original across, what was rebuilt up. On the diagonal nothing is lost.
function drawScatter(original, rebuilt) {
  const side = 160, largest = largestOf(original, rebuilt), at = value => (value / largest + 1) / 2 * side;
  return svg("svg", {viewBox: `-2 -2 ${side + 4} ${side + 4}`, role: "img", "aria-label": "Original coordinates across, rebuilt ones up"},
    svg("path", {d: `M0 0V${side}H${side}M0 ${side}L${side} 0`, class: "axis"}),
    svg("path", {class: "point", d: original.map((value, i) => square(at(value) - 1.5, side - at(rebuilt[i]) - 1.5, 3, 3)).join("")}));
}

const largestOf = (original, rebuilt) => Math.max(1e-30, ...rebuilt.map(Math.abs), ...(original || []).map(Math.abs));

const CURVES = {hamming: ["NN_b", "2 3"], asymmetric: ["NN_a", "6 3"], reconstruction: ["NN_e", ""]};

// 10@10 of the three searches by the bytes of a code.
function drawRecall(sizes, measure, now) {
  const wide = 260, high = 120, left = 26, top = 8, bottom = 18, right = 42;
  const logs = sizes.map(size => Math.log2(size.bytes)), low = logs[0], span = (logs[logs.length - 1] - low) || 1;
  const x = i => left + (logs[i] - low) / span * (wide - left - right), y = value => top + (1 - value) * (high - top - bottom);
  const words = `${measure} by the bytes of a code: ` + Object.entries(CURVES).map(([method, [name]]) =>
    name + " " + sizes.map(size => size.recall[method] ? `${size.recall[method][measure].toFixed(2)} at ${size.bytes}` : "").filter(Boolean).join(", ")).join("; ");
  const drawn = svg("svg", {viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": words});
  for (const value of [0, 0.5, 1]) {
    drawn.append(svg("path", {d: `M${left} ${y(value)}H${wide - right}`, class: "axis"}));
    const text = svg("text", {x: 0, y: y(value) + 4, class: "label"});
    text.textContent = value;
    drawn.append(text);
  }
  drawn.append(svg("path", {d: `M${x(now)} ${top}V${high - bottom}`, class: "now-line"}));
  sizes.forEach((size, i) => {
    const text = svg("text", {x: x(i), y: high - 4, class: "label", "text-anchor": "middle"});
    text.textContent = size.bytes;
    drawn.append(text);
  });
  const ends = [];
  for (const [method, [name, dashes]] of Object.entries(CURVES)) {
    const points = sizes.map((size, i) => size.recall[method] && [x(i), y(size.recall[method][measure])]).filter(Boolean);
    if (!points.length) continue;
    drawn.append(svg("path", {d: "M" + points.map(point => point.join(" ")).join("L"), class: "curve", stroke: "var(--kept)", "stroke-dasharray": dashes}));
    ends.push({name, at: points[points.length - 1][1]});
  }
  ends.sort((a, b) => a.at - b.at).forEach((end, i) => {
    end.at = i ? Math.max(end.at, ends[i - 1].at + 12) : end.at;
    const text = svg("text", {x: wide - right + 5, y: end.at + 4, class: "label"});
    text.textContent = end.name;
    drawn.append(text);
  });
  return drawn;
}
