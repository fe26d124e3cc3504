"use strict";
// What all views share. Text from elsewhere is only ever set as text, never read as HTML.

const SVG = document.getElementById("drawing").namespaceURI;
const WORDS = new Map(Object.entries(read("words")));
const VIEWS = new Map(); // by name: a function that fills an element from data

/** The data of a block of JSON. */
function read(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

/** A text in the reader's language, with {places} filled in. */
function say(text, values = {}) {
  const known = WORDS.get(text) ?? text;
  return known.replace(/\{(\w+)\}/g, (place, name) => Object.hasOwn(values, name) ? String(values[name]) : place);
}

/** An element with attributes, listeners (on: {click: ...}) and children, texts among them. */
function make(name, attributes = {}, ...children) {
  return fitted(document.createElement(name), attributes, children);
}

/** The same in a drawing. */
function shape(name, attributes = {}, ...children) {
  return fitted(document.createElementNS(SVG, name), attributes, children);
}

function fitted(element, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  for (const [name, heed] of Object.entries(on)) element.addEventListener(name, heed);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A button with a drawing, of lines in a square of 16, and a name. */
function press(d, label, heed) {
  const drawing = shape("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, shape("path", { d }));
  return make("button", { type: "button", title: label, "aria-label": label, on: { click: heed } }, drawing);
}

/** A button that is on or off. */
function toggle(label, pressed, heed) {
  const button = make("button", { type: "button", "aria-pressed": String(pressed) });
  button.append(...[label].flat());
  button.addEventListener("click", () => {
    const now = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(now));
    heed(now);
  });
  return button;
}

/** A number with as many digits as can be seen. */
function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

/** 2000000 as 2M. */
function count(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${Number((value / 1e9).toPrecision(4))}G`;
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(4))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(4))}k`;
  return String(Number(value.toPrecision(6)));
}

document.addEventListener("DOMContentLoaded", () => {
  for (const host of document.querySelectorAll(".view")) {
    VIEWS.get(host.dataset.view)(host, read(host.dataset.from));
  }
});
