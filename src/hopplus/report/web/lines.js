// How lines look, and the numbers they are drawn by.

const COLOURS = 7;
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 2", "12 3 2 3 2 3"];
const MARKERS = [ // around a point
  "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0", "M-3 -3h6v6h-6z", "M0 -4L4 3H-4z", "M0 -4.5L4.5 0L0 4.5L-4.5 0z",
  "M-3.5 -3.5L3.5 3.5M3.5 -3.5L-3.5 3.5", "M0 4L4 -3H-4z", "M-4 0H4M0 -4V4",
];

/** How a line looks: by its run where there are several, and else by its name. */
function look(several, run, name) {
  const number = several ? run : name;
  return {
    colour: `var(--c${number % COLOURS})`,
    dash: DASHES[(several ? name : number) % DASHES.length],
    marker: several ? MARKERS[run % MARKERS.length] : null,
  };
}

/** A short piece of a line, for a button. */
function swatch(style) {
  const line = shape("line", { x1: 0, y1: 6, x2: 32, y2: 6, class: "curve", "stroke-dasharray": style.dash });
  line.style.stroke = style.colour;
  const marks = style.marker ? [marker(style, 16, 6)] : [];
  return shape("svg", { class: "swatch", viewBox: "0 0 32 12", "aria-hidden": "true" }, line, ...marks);
}

function marker(style, x, y) {
  const mark = shape("path", { d: style.marker, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
  mark.style.fill = style.marker.includes("z") || style.marker.includes("a") ? style.colour : "none";
  mark.style.stroke = style.colour;
  return mark;
}

/** Means of so many points around each; where there is no number, there stays none. */
function smoothed(values, width) {
  if (!values || width < 2) return values;
  const half = Math.floor(width / 2);
  const sums = [0], counts = [0];
  for (const value of values) {
    sums.push(sums[sums.length - 1] + (value ?? 0));
    counts.push(counts[counts.length - 1] + (value === null ? 0 : 1));
  }
  return values.map((value, place) => {
    if (value === null) return null;
    const reach = Math.min(half, place, values.length - 1 - place); // even to both sides: no lag
    const first = place - reach, last = place + reach + 1;
    return (sums[last] - sums[first]) / (counts[last] - counts[first]);
  });
}

/** To a tenth of a pixel. */
function tenth(pixels) {
  return Math.round(pixels * 10) / 10;
}

/** Round numbers from low to high, about as many as wanted, no nearer to each other than `least`. */
function ticks(low, high, wanted, least = 0) {
  const rough = Math.max(least, (high - low) / wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const found = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high + step * 1e-9; number += 1) {
    found.push(Number((number * step).toPrecision(12)));
  }
  return found;
}

/** The place of the number that is nearest, among rising ones. */
function nearest(rising, wanted) {
  let low = 0, high = rising.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (rising[middle] < wanted) low = middle; else high = middle;
  }
  return wanted - rising[low] <= rising[high] - wanted ? low : high;
}
