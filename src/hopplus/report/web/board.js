// The board: squares, things and seats, drawn in units of a square.

const EDGE = 0.1;
const KNOWN_SEATS = 8; // that have a colour

/** One of the drawings of things, from shapes as [kind, fill, points, size, tilt]. */
function sprite(shapes) {
  return shape("g", {}, ...shapes.map(([kind, fill, points, size, tilt]) => {
    const [x, y] = points[0];
    if (kind === "oval") {
      return shape("ellipse", { cx: x, cy: y, rx: size[0], ry: size[1], fill, transform: `rotate(${tilt} ${x} ${y})` });
    }
    const way = points.map((point) => point.join(" ")).join("L");
    if (kind === "area") return shape("path", { d: `M${way}Z`, fill });
    return shape("path", { d: `M${way}`, fill: "none", stroke: fill, "stroke-width": size[0],
      "stroke-linecap": "round", "stroke-linejoin": "round" });
  }));
}

/** Where so many seats stand in a square, as [x, y, side] each: around what is there, if anything. */
function spots(seats, things) {
  if (!things && seats === 1) return [[0.5, 0.5, 0.72]];
  if (seats === 1) return [[0.77, 0.76, 0.44]];
  const columns = seats <= 4 ? 2 : 3;
  const side = Math.min(0.44, 0.94 / columns);
  const corner = (place) => 0.5 + (place - (columns - 1) / 2) * (0.94 / columns);
  const down = seats <= 2 && things ? 0.28 : seats <= 2 ? 0 : null; // two stand side by side
  return Array.from({ length: seats }, (_, n) => {
    const row = Math.floor(n / columns);
    return [corner(n % columns), down === null ? corner(row) : 0.5 + down, side];
  });
}

class Board {
  constructor(looks) {
    this.looks = looks; // colours of seats, and drawings
    this.squares = shape("g");
    this.things = shape("g");
    this.way = shape("g");
    this.aims = shape("g");
    this.pieces = shape("g");
    this.element = shape("svg", { class: "board", role: "img" }, this.squares, this.aims, this.things, this.way, this.pieces);
  }

  /** Another game: its squares, and as many pieces as seats. */
  begin(replay) {
    this.replay = replay;
    this.ground(replay.obstacles);
    this.tokens = replay.players.map((_, seat) => this.token(seat));
    this.pieces.replaceChildren(...this.tokens);
  }

  /** The squares, those with obstacles among them. */
  ground(obstacles) {
    const { rows, columns } = this.replay;
    this.element.setAttribute("viewBox", `${-EDGE} ${-EDGE} ${columns + 2 * EDGE} ${rows + 2 * EDGE}`);
    const plate = shape("rect", { x: -EDGE, y: -EDGE, width: columns + 2 * EDGE, height: rows + 2 * EDGE, rx: 0.16 });
    plate.style.fill = "var(--plate)";
    this.squares.replaceChildren(plate);
    const walls = new Set(obstacles.map(([row, column]) => row * columns + column));
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        this.square(row, column, walls.has(row * columns + column));
      }
    }
  }

  square(row, column, wall) {
    const tile = shape("rect", { x: column + 0.03, y: row + 0.03, width: 0.94, height: 0.94, rx: 0.12 });
    tile.style.fill = wall ? "var(--rock)" : (row + column) % 2 ? "var(--tile-odd)" : "var(--tile)";
    this.squares.append(tile);
    if (!wall) return;
    const top = shape("rect", { x: column + 0.03, y: row + 0.03, width: 0.94, height: 0.82, rx: 0.12 });
    top.style.fill = "var(--rock-top)";
    const rock = sprite(this.looks.sprites.rock);
    rock.setAttribute("transform", `translate(${column} ${row})`);
    this.squares.append(top, rock);
  }

  tokenOf(seat) {
    const token = make("span", { class: "token" }, String(seat));
    const { back, ink } = this.colour(seat);
    token.style.background = back;
    token.style.color = ink;
    return token;
  }

  colour(seat) {
    return this.looks.seats[seat % KNOWN_SEATS];
  }

  token(seat) {
    const { back, ink } = this.colour(seat);
    return shape("g", { class: "piece", "data-seat": seat },
      shape("circle", { class: "ring", r: 0.5, fill: "#fff" }),
      shape("circle", { r: 0.42, fill: back }),
      shape("text", { "font-size": 0.55, fill: ink }, String(seat)));
  }

  /** A moment, as a seat looks at it, with the line it imagines if it is wanted. */
  show(step, seat, line) {
    const at = ([row, column]) => `${row},${column}`;
    const things = new Map(), there = new Map();
    for (const target of step.targets) things.set(at(target.cell), [...(things.get(at(target.cell)) ?? []), target]);
    step.seats.forEach((cell, number) => { if (cell) there.set(at(cell), [...(there.get(at(cell)) ?? []), number]); });
    this.things.replaceChildren(...step.targets.map((target) => this.thing(target, things.get(at(target.cell)), there.has(at(target.cell)))));
    step.seats.forEach((cell, number) => {
      const token = this.tokens[number];
      token.style.display = cell ? "" : "none";
      token.firstChild.setAttribute("fill", number === seat ? "#111" : "#fff");
      if (!cell) return;
      const here = there.get(at(cell));
      const [x, y, side] = spots(here.length, things.has(at(cell)))[here.indexOf(number)];
      token.style.transform = `translate(${cell[1] + x}px, ${cell[0] + y}px) scale(${side})`;
    });
    this.way.replaceChildren(...(line ? this.imagined(step, line) : []));
    this.element.setAttribute("aria-label", this.words(step));
  }

  thing(target, together, shared) {
    const kind = this.replay.kinds[target.kind];
    const drawing = Object.hasOwn(this.looks.sprites, kind) ? sprite(this.looks.sprites[kind])
      : shape("text", { x: 0.5, y: 0.5, "font-size": 0.5 }, String(kind ?? "?").slice(0, 1));
    const place = together.indexOf(target), count = together.length;
    const side = (shared ? 0.84 : 0.94) / (count > 1 ? 1.5 : 1);
    const x = (1 - side) / 2 * (shared ? 0.5 : 1) + (count > 1 ? (place / (count - 1) - 0.5) * 0.4 : 0);
    const [row, column] = target.cell;
    drawing.setAttribute("transform", `translate(${column + x} ${row + (1 - side) / 2 * (shared ? 0.6 : 1)}) scale(${side})`);
    return drawing;
  }

  /** The ways of everyone along an imagined line, each a little beside the others. */
  imagined(step, line) {
    const made = [];
    step.seats.forEach((cell, seat) => {
      if (!cell) return;
      const beside = (seat - (step.seats.length - 1) / 2) * 0.12;
      const spot = ([row, column]) => [column + 0.5 + beside, row + 0.5 + beside];
      const cells = [cell];
      for (const moment of line) { if (!moment.seats[seat]) break; cells.push(moment.seats[seat]); }
      const points = cells.map(spot);
      const path = shape("path", { class: "imagined", d: `M${points.map((point) => point.join(" ")).join("L")}` });
      path.style.stroke = this.colour(seat).back;
      made.push(path);
      points.slice(1).forEach(([x, y], number) => {
        made.push(shape("circle", { cx: x, cy: y, r: 0.08, fill: this.colour(seat).back, stroke: "#fff",
          "stroke-width": 0.02, opacity: Math.max(0.35, 1 - number * 0.12) }));
      });
    });
    return made;
  }

  /** Where somebody is thought to go, as {seat, from, cell, share}: a frame in the seat's colour, and the way there. */
  aim(aims) {
    this.aims.replaceChildren(...aims.flatMap(({ seat, from, cell, share }, number) => {
      const inset = 0.06 + number * 0.06, side = 1 - 2 * inset; // so that several frames of a square can be told apart
      const frame = shape("rect", { class: "aim", "data-seat": seat, x: cell[1] + inset, y: cell[0] + inset, width: side, height: side, rx: 0.12, opacity: share });
      const way = shape("path", { class: "aim", d: `M${from[1] + 0.5} ${from[0] + 0.5}L${cell[1] + 0.5} ${cell[0] + 0.5}`, opacity: share / 2 });
      for (const mark of [frame, way]) mark.style.stroke = this.colour(seat).back;
      return [way, frame];
    }));
  }

  /** The board for those who cannot see it. */
  words(step) {
    const cell = ([row, column]) => say("row {row}, column {column}", { row: row + 1, column: column + 1 });
    const seats = step.seats.map((where, seat) => `${say("seat {seat}", { seat })}: ${where ? cell(where) : say("left the board")}`);
    const targets = step.targets.map((one) => `${say(String(this.replay.kinds[one.kind]))}: ${cell(one.cell)}`);
    return [...seats, ...targets].join("; ");
  }
}
