// Episodes, step by step: the board, and beside it what a seat saw, thought and foresaw.

const SPEEDS = [0.5, 1, 2, 4, 8]; // steps a second
const ICONS = { // in a square of 16
  first: "M4 3V13M13 3L6 8L13 13z", back: "M11 3L4 8L11 13z", play: "M4 2L13 8L4 14z", pause: "M5 3V13M11 3V13",
  on: "M5 3L12 8L5 13z", last: "M12 3V13M3 3L10 8L3 13z",
};

/** A name, a bar and a number. */
function share(name, part, kind, marks = {}) {
  const fill = make("div", { class: `fill ${kind}` });
  fill.style.width = `${Math.max(0, Math.min(1, part ?? 0)) * 100}%`;
  const classes = ["share", marks.taken ? "taken" : "", marks.illegal ? "illegal" : ""].join(" ").trim();
  return make("div", { class: classes }, make("span", { class: "name" }, name),
    make("div", { class: "rail" }, fill), make("span", { class: "number" }, part === null ? "–" : part.toFixed(3)));
}

/** What someone is thought to be after: chances that are believed, or what its foreseen actions lead to. */
function goals(replay, about, after, believed, read) {
  const rows = (text, parts) => [make("p", { class: "small" }, text),
    ...parts.map((part, kind) => share(say(String(replay.kinds[kind] ?? "none of them")), part, "about"))];
  const belief = about && replay.goals === "belief";
  if (belief && about.length > 1) return rows(believed, about); // of a single kind there is nothing to believe
  const made = after ? rows(read, after.kinds) : [];
  if (about && !belief) { // for those who want to know: nobody can read them
    made.push(make("details", { class: "small" }, make("summary", {}, say("inferred goal, {n} numbers", { n: about.length })), about.map(short).join(" ")));
  }
  return made;
}

/** What someone was expected to do, below a text, with what it did marked. */
function foreseen(replay, predicted, action, text) {
  if (!predicted) return [];
  return [make("p", { class: "small foreseen" }, text), ...predicted.map((part, number) => {
    const taken = number === action;
    return share(`${say(String(replay.actions[number]))}${taken ? " ●" : ""}`, part, "other", { taken });
  })];
}

class Replay {
  constructor(host, data) {
    this.data = data;
    this.board = new Board(data);
    this.playing = null;
    this.build(host);
    this.begin(0);
  }

  get step() { return this.episode.steps[this.moment]; }

  build(host) {
    const choose = (label, heed) => make("select", { "aria-label": label, on: { change: (event) => heed(event.target.selectedIndex) } });
    this.runPick = choose(say("run"), (number) => this.begin(number));
    this.runPick.append(...this.data.replays.map((replay) => make("option", {}, replay.name)));
    this.episodePick = choose(say("episode"), (number) => this.start(number));
    this.speedPick = choose(say("speed"), () => {});
    this.speedPick.append(...SPEEDS.map((speed) => make("option", {}, say("{n} a second", { n: speed }))));
    this.speedPick.selectedIndex = 2;
    this.playButton = press(ICONS.play, say("play"), () => this.play(!this.playing));
    this.slider = make("input", { type: "range", min: 0, value: 0, "aria-label": say("moment"), on: {
      input: () => { this.play(false); this.go(Number(this.slider.value)); },
    } });
    this.lineBox = make("input", { type: "checkbox", on: { change: () => this.draw() } });
    this.lineBox.checked = true;
    this.lineLabel = make("label", {}, this.lineBox, say("imagined line"));
    this.aimBox = make("input", { type: "checkbox", on: { change: () => this.draw() } });
    this.aimBox.checked = true;
    this.aimLabel = make("label", {}, this.aimBox, say("predicted targets"));
    this.seatPick = make("div", { class: "bar pick", role: "group", "aria-label": say("look through") });
    this.clock = make("p", { class: "small clock", role: "status" });
    this.looks = make("div", { class: "looks" });
    this.element = make("div", { class: "replay", tabindex: 0, role: "group", "aria-label": say("Replay") },
      make("div", {}, this.board.element, this.slider, this.clock,
        make("div", { class: "bar" },
          press(ICONS.first, say("first moment"), () => this.go(0)), press(ICONS.back, say("a step back"), () => this.go(this.moment - 1)),
          this.playButton, press(ICONS.on, say("a step on"), () => this.go(this.moment + 1)),
          press(ICONS.last, say("last moment"), () => this.go(Infinity)), this.speedPick, this.lineLabel, this.aimLabel)),
      make("div", {}, this.seatPick, this.looks));
    const several = this.data.replays.length > 1;
    host.append(make("div", { class: "bar" },
      several ? make("label", {}, say("run"), this.runPick) : "",
      make("label", {}, say("episode"), this.episodePick)), this.element);
    document.addEventListener("keydown", (event) => this.key(event));
  }

  begin(number) {
    this.replay = this.data.replays[number];
    this.board.begin(this.replay);
    this.seat = 0;
    this.episodePick.replaceChildren(...this.replay.episodes.map((episode) => make("option", {}, this.title(episode))));
    this.start(0);
  }

  title(episode) {
    const got = episode.returns.map(short).join(" ");
    const base = `${say(String(episode.label))}: ${say("returns")} ${got}`;
    const told = episode.surprise === null || episode.surprise === undefined ? "" : `, ${say("surprise")} ${short(episode.surprise)}`;
    return `${base}${told} (${say("number {n}", { n: episode.number })})`;
  }

  start(number) {
    this.play(false);
    this.episode = this.replay.episodes[number];
    this.slider.max = this.episode.steps.length - 1;
    this.go(0);
  }

  go(moment) {
    this.moment = Math.min(Math.max(moment, 0), this.episode.steps.length - 1);
    this.draw();
  }

  play(on) {
    clearTimeout(this.playing);
    this.playing = null;
    this.playButton.querySelector("path").setAttribute("d", on ? ICONS.pause : ICONS.play);
    this.playButton.title = on ? say("pause") : say("play");
    this.playButton.setAttribute("aria-label", this.playButton.title);
    if (!on) return;
    const last = this.episode.steps.length - 1;
    const next = () => {
      this.go(this.moment + 1);
      if (this.moment < last) this.playing = setTimeout(next, 1000 / SPEEDS[this.speedPick.selectedIndex]);
      else this.play(false);
    };
    if (this.moment === last) this.go(0);
    this.playing = setTimeout(next, 1000 / SPEEDS[this.speedPick.selectedIndex]);
  }

  key(event) {
    const within = this.element.contains(event.target);
    if (!this.element.offsetParent) return; // it is not to be seen
    if (event.ctrlKey || event.metaKey || event.altKey || !(within || event.target === document.body)) return;
    if (event.target.tagName === "SELECT") return;
    const seat = within && /^[0-7]$/.test(event.key) ? Number(event.key) : null;
    const to = { ArrowLeft: this.moment - 1, ArrowRight: this.moment + 1, Home: 0, End: Infinity }[event.key];
    const turns = event.key === "Home" || event.key === "End";
    if (to !== undefined && (within || !turns)) { this.play(false); this.go(to); }
    else if (event.key === " " && within && event.target.tagName !== "BUTTON") this.play(!this.playing);
    else if (seat !== null && seat < this.replay.players.length) { this.seat = seat; this.draw(); }
    else return;
    event.preventDefault();
  }

  /** What a seat did at this moment, in words. */
  acted(seat) {
    const action = this.step.acts ? this.step.acts[seat] : this.step.looks?.[seat]?.action ?? -1;
    return action >= 0 && this.step.seats[seat] ? action : null;
  }

  actionName(action) { return say(String(this.replay.actions[action])); }

  draw() {
    const { step } = this;
    const look = step.looks?.[this.seat] ?? null;
    this.slider.value = this.moment;
    const anyone = (what) => this.replay.episodes.some((one) => one.steps.some((at) => at.looks?.some((seat) => seat?.[what])));
    this.lineLabel.hidden = !anyone("line");
    this.aimLabel.hidden = !anyone("after");
    this.board.show(step, this.seat, this.lineBox.checked ? look?.line ?? null : null);
    this.board.aim(this.aimBox.checked ? this.aims(look) : []);
    const last = this.episode.steps.length - 1;
    const got = step.rewards.map((reward, seat) => [reward, seat]).filter(([reward]) => reward)
      .map(([reward, seat]) => say("seat {seat} gets {reward}", { seat, reward: short(reward) }));
    this.clock.textContent = [say("step {n} of {all}", { n: this.moment, all: last }), ...got].join("; ");
    this.drawSeats();
    this.drawLook(look);
  }

  /** Where this seat thinks that each other goes, in the other's colour. */
  aims(look) {
    const others = this.replay.players.map((_, seat) => seat).filter((seat) => seat !== this.seat);
    return others.map((seat, place) => ({ seat, from: this.step.seats[seat], ...look?.after?.[place] })).filter((one) => one.cell && one.from);
  }

  drawSeats() {
    const focused = [...this.seatPick.children].indexOf(document.activeElement);
    this.seatPick.replaceChildren(...this.replay.players.map((player, seat) => {
      const sum = this.episode.steps.slice(0, this.moment + 1).reduce((total, step) => total + step.rewards[seat], 0);
      const action = this.acted(seat);
      const doing = this.step.seats[seat] ? (action === null ? "" : `, ${this.actionName(action)}`) : `, ${say("left the board")}`;
      const button = make("button", { type: "button", "aria-pressed": String(seat === this.seat), on: {
        click: () => { this.seat = seat; this.draw(); },
      } }, this.board.tokenOf(seat), `${player}: ${short(Number(sum.toPrecision(6)))}${doing}`);
      return button;
    }));
    if (focused >= 0) this.seatPick.children[focused]?.focus();
  }

  drawLook(look) {
    if (!look) {
      const text = this.step.seats[this.seat] ? say("Nothing to show of this seat at this moment.") : say("This seat has left the board.");
      this.looks.replaceChildren(make("p", { class: "small" }, text));
      return;
    }
    const others = this.replay.players.map((_, seat) => seat).filter((seat) => seat !== this.seat);
    const rest = others.map((seat, place) => this.other(look, seat, place));
    this.looks.replaceChildren(this.own(look), ...rest.filter(Boolean));
  }

  /** Its own policy, value and search. */
  own(look) {
    const rows = look.policy.map((part, action) => [part, action]).flatMap(([part, action]) => {
      const taken = action === look.action;
      const name = `${this.actionName(action)}${taken ? " ●" : ""}`;
      const marks = { taken, illegal: look.legal && !look.legal[action] };
      const bars = [share(name, part, "", marks)];
      if (look.visits) bars.push(share("", look.visits[action], "visits", marks));
      return bars;
    });
    const value = look.value === null || look.value === undefined ? null : make("p", { class: "small value" }, `${say("value")} ${short(look.value)}`);
    const about = look.visits ? say("Policy (first bar) and visits of the search (second); ● is what it does.") : say("Policy; ● is what it does.");
    return make("div", { class: "own" }, make("h4", {}, this.board.tokenOf(this.seat), this.replay.players[this.seat]), value,
      make("p", { class: "small" }, about), ...rows);
  }

  /** What it thinks of another seat. */
  other(look, seat, place) {
    const about = look.about?.[place] ?? null, predicted = look.predicted?.[place] ?? null, after = look.after?.[place] ?? null;
    if ((!about && !predicted) || !this.step.seats[seat]) return null;
    const action = this.acted(seat);
    const right = action !== null && predicted?.[action] === Math.max(...predicted ?? []);
    const text = action === null ? say("Predicted actions.") : say(right ? "Predicted actions; ● is what it did: predicted." : "Predicted actions; ● is what it did: not predicted.");
    return make("div", { class: "other" }, make("h4", {}, this.board.tokenOf(seat), this.replay.players[seat]),
      ...goals(this.replay, about, after, say("Believed to be after"), say("Predicted to go for; 0 is chance")),
      ...foreseen(this.replay, predicted, action, text));
  }
}

VIEWS.set("replay", (host, data) => { host.replay = new Replay(host, data); });
