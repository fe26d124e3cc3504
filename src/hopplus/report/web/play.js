// A seat for a person: the board, keys and buttons to act with, and what the others think of you.

const MOVES = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", " "]; // the first five actions of every game
const SIGNS = ["↑", "↓", "←", "→", "␣"];
const STAY = 4;
const FAR = 24; // pixels that a finger moves before it is a swipe
const PAUSE = 350; // milliseconds between steps that are played by themselves

class Play {
  constructor(host, data) {
    Object.assign(this, { host, data, game: data.table, person: data.person });
    this.board = new Board(data);
    this.board.begin(this.game);
    this.keys = this.keysOf(this.game.actions);
    this.build();
    this.ask("begin", { session: location.hash.slice(1) || undefined });
    history.replaceState(null, "", location.pathname + location.search); // a copy of this tab is another session
  }

  /** For each action the keys that do it: the arrows, and else a number and the first letter of its last word. */
  keysOf(actions) {
    const letters = actions.map((name) => String(name).split(/[ -]/).pop()[0]?.toLowerCase());
    return actions.map((_, action) => {
      if (action <= STAY) return [MOVES[action]];
      const alone = letters.indexOf(letters[action], STAY + 1) === letters.lastIndexOf(letters[action]);
      return [String(action - STAY), ...(alone ? [letters[action]] : [])];
    });
  }

  nameOf(seat) {
    return seat === this.person ? say("you") : String(this.players[seat]);
  }

  get players() { return this.state?.replay?.players ?? this.game.players; }

  build() {
    this.clock = make("p", { class: "clock", role: "status" });
    this.buttons = this.game.actions.map((name, action) => make("button", {
      type: "button", "data-action": action, on: { click: () => this.act(action) },
    }, action <= STAY ? `${SIGNS[action]} ${say(String(name))}` : `${say(String(name))} (${this.keys[action].at(-1)})`));
    this.next = make("button", { type: "button", class: "next", on: { click: () => this.goOn() } });
    this.live = make("input", { type: "checkbox", on: { change: () => this.draw() } });
    this.scores = make("div", { class: "scores" });
    this.opinions = make("div", { class: "looks" });
    this.chart = make("div", { class: "charts" });
    this.review = make("div", { class: "review", hidden: "" });
    this.consent = this.consentAsked();
    const languages = this.data.languages.filter((name) => name !== this.data.language).map((name) => {
      const link = make("a", { lang: name, href: `?language=${name}`, on: {
        click: () => { link.href = `?language=${name}#${this.session ?? ""}`; }, // the same session goes on there
      } }, { en: "English", zh: "中文" }[name] ?? name);
      return link;
    });
    this.element = make("div", { class: "replay play" },
      make("div", {}, this.board.element, this.clock, make("div", { class: "pad" }, ...this.buttons), this.next),
      make("div", {}, this.scores,
        make("div", { class: "bar" }, make("label", {}, this.live, say("show what they think of me while I play")), ...languages),
        this.opinions, this.chart));
    this.host.append(this.consent, this.element, this.review);
    document.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("click", (event) => { // keys go on to act, unless they have brought somebody there
      if (event.detail > 0) document.activeElement.blur();
    });
    this.board.element.addEventListener("pointerdown", (event) => { this.touched = event; event.preventDefault(); });
    window.addEventListener("pointerup", (event) => this.swipe(event));
  }

  /** May episodes be recorded? Nothing is played before there is an answer, and yes can be taken back. */
  consentAsked() {
    const answer = (text, yes) => make("button", { type: "button", on: { click: () => this.ask("consent", { yes }) } }, text);
    this.question = make("div", {},
      make("p", {}, say("May your episodes be recorded? What everyone on the board sees, does and gets is written to {folder} on this machine, and nothing else about you. Models may learn from it.", { folder: this.data.recorded })),
      make("div", { class: "bar" }, answer(say("Yes, record my episodes"), true), answer(say("No, play unrecorded"), false)));
    this.recording = make("div", { class: "bar" }, say("Your episodes are recorded."), answer(say("Stop recording"), false));
    return make("div", { class: "consent", hidden: "" }, this.question, this.recording);
  }

  get waits() { return this.data.recorded !== null && this.state?.consent === null; }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.state) return;
    const within = event.target.tagName;
    if (within === "SELECT" || within === "INPUT" && event.key === " " || within === "BUTTON" && (event.key === " " || event.key === "Enter")) return;
    if (this.state.over) {
      if (event.key !== "Enter") return; // the replay has keys of its own
      this.goOn();
    } else {
      const action = this.keys.findIndex((keys) => keys.includes(event.key.length === 1 ? event.key.toLowerCase() : event.key));
      if (action < 0) return;
      this.act(action);
    }
    event.preventDefault();
  }

  swipe(event) {
    const began = this.touched;
    this.touched = null;
    if (!began || !this.state || this.state.over) return;
    const right = event.clientX - began.clientX, down = event.clientY - began.clientY;
    if (Math.max(Math.abs(right), Math.abs(down)) < FAR) return;
    if (Math.abs(down) >= Math.abs(right)) this.act(down < 0 ? 0 : 1);
    else this.act(right < 0 ? 2 : 3);
  }

  act(action) {
    if (this.state?.legal[action] && !this.waits) this.ask("act", { action });
  }

  goOn() {
    if (this.state?.over) this.ask("next", {});
  }

  /** One request at a time: what is asked for while one is under way is not meant for what it brings. */
  async ask(what, more) {
    if (this.asking) return;
    this.asking = true;
    clearTimeout(this.later);
    try {
      const answer = await fetch(what, { method: "POST", body: JSON.stringify({ session: this.session, ...more }) });
      const told = await answer.json();
      if (told.error) { this.clock.textContent = say(told.error); return; }
      this.session = told.session;
      this.state = told;
      this.draw();
      // Who has left the board looks on.
      if (!told.over && !told.now.seats[this.person] && told.legal.filter(Boolean).length === 1) {
        this.later = setTimeout(() => this.act(told.legal.indexOf(true)), PAUSE);
      }
    } catch {
      this.clock.textContent = say("There is no answer: is hopplus play still running?");
    } finally {
      this.asking = false;
    }
  }

  draw() {
    const { state } = this;
    if (!state) return;
    const ground = JSON.stringify(state.now.obstacles);
    if (ground !== this.drawn) this.board.ground(state.now.obstacles);
    this.drawn = ground;
    this.board.show(state.now, this.person, null);
    this.buttons.forEach((button, action) => { button.disabled = this.waits || !state.legal[action]; });
    this.consent.hidden = this.data.recorded === null || state.consent === false;
    this.question.hidden = !this.waits;
    this.recording.hidden = this.waits;
    this.next.hidden = !state.over;
    this.next.textContent = say(state.trial_over ? "New trial ⏎" : "Next episode ⏎");
    this.clock.textContent = this.told();
    this.scores.replaceChildren(...state.totals.map((total, seat) => this.score(total, seat)));
    this.drawOpinions();
    this.drawAims();
    this.drawReturns();
    this.drawReview();
  }

  told() {
    const { state } = this;
    const got = state.now.rewards.map((reward, seat) => [reward, seat]).filter(([reward]) => reward)
      .map(([reward, seat]) => seat === this.person ? say("you get {reward}", { reward: short(reward) }) : say("seat {seat} gets {reward}", { seat, reward: short(reward) }));
    const where = [say("episode {n} of {all}", { n: state.episode + 1, all: this.data.episodes }), say("step {n} of {all}", { n: state.step, all: this.game.horizon })];
    if (state.over) where.push(say("the episode is over"));
    return [...where, ...got].join("; ");
  }

  score(total, seat) {
    const { state } = this, act = state.acts[seat];
    const doing = act >= 0 ? `, ${say(String(this.game.actions[act]))}` : "";
    return make("div", { "data-seat": seat, class: seat === this.person ? "me" : "" }, this.board.tokenOf(seat), `${this.nameOf(seat)}: ${short(total)}${doing}`);
  }

  /** What the others thought of you before your last action, and when all is over how often they were right. */
  drawOpinions() {
    const { state } = this;
    this.opinions.hidden = !(this.live.checked || state.over);
    const cards = state.opinions.flatMap((opinion, seat) => {
      if (!opinion || (opinion.value === null && !opinion.about && !opinion.predicted)) return [];
      const act = opinion.acted;
      const right = opinion.predicted && opinion.predicted[act] === Math.max(...opinion.predicted);
      const text = say(right ? "Predicted of you; ● is what you did: predicted." : "Predicted of you; ● is what you did: not predicted.");
      return [make("div", { class: "opinion", "data-seat": seat }, make("h4", {}, this.board.tokenOf(seat), this.nameOf(seat)),
        opinion.value === null ? null : make("p", { class: "small value" }, `${say("expects for itself")} ${short(opinion.value)}`),
        ...goals(this.game, opinion.about, opinion.after, say("Believes that you are after"), say("Predicts that you go for; 0 is chance")),
        ...foreseen(this.game, opinion.predicted, act, text), this.share(seat))];
    });
    const nothing = make("p", { class: "small" }, say("Nobody here has thoughts that can be shown."));
    this.opinions.replaceChildren(...(cards.length || !state.step ? cards : [nothing]));
  }

  /** Where the others thought that you were going, each in its colour, if you want to know while you play. */
  drawAims() {
    const { state } = this, from = state.now.seats[this.person];
    const aims = state.opinions.map((opinion, seat) => ({ seat, from, ...opinion?.after }));
    this.board.aim(this.live.checked && !state.over ? aims.filter((one) => one.cell && from) : []);
  }

  /** How often a seat has foreseen what you did in an episode that is over. */
  share(seat) {
    const steps = this.state.replay?.episodes[0].steps.filter((step) => step.looks[seat]?.predicted) ?? [];
    const place = this.person - (this.person > seat ? 1 : 0);
    const pairs = steps.map((step) => [step.looks[seat].predicted[place], step.acts[this.person]]).filter(([chances, act]) => chances && act >= 0);
    if (!pairs.length) return null;
    const right = pairs.filter(([chances, act]) => chances[act] === Math.max(...chances)).length;
    return make("p", { class: "small" }, say("In this episode it predicted {n} of your {all} actions.", { n: right, all: pairs.length }));
  }

  drawReturns() {
    const { returns } = this.state;
    const key = JSON.stringify(returns);
    if (key === this.charted) return;
    this.charted = key;
    if (!returns.length) return this.chart.replaceChildren();
    const x = Array.from({ length: this.data.episodes }, (_, number) => number + 1);
    const chart = new Chart({
      title: say("Returns by episode"), about: say("Of this trial, in which the same co-players remember what they can."), axis: say("episode"),
      number: "play", levels: [], lines: this.game.players.map((_, seat) => ({ name: `${seat} ${this.nameOf(seat)}`, run: 0, x, y: x.map((number) => returns[number - 1]?.[seat] ?? null) })),
    }, [{ x }], { hidden: new Set(), bands: false, smooth: 0 });
    this.chart.replaceChildren(chart.element);
    chart.draw();
  }

  /** The episode once more, through anyone's eyes. */
  drawReview() {
    const { replay } = this.state;
    this.review.hidden = !replay;
    if (!replay || this.reviewed === replay) return;
    this.reviewed = replay;
    if (this.replay) {
      this.replay.data.replays = [replay];
      this.replay.begin(0);
    } else {
      this.review.append(make("h3", {}, say("The episode once more, through anyone's eyes")));
      this.replay = new Replay(this.review, { ...this.data, replays: [replay] });
    }
    const tells = this.state.opinions.findIndex((opinion) => opinion?.predicted ?? opinion?.about);
    this.replay.seat = Math.max(0, tells); // who has thoughts of you is looked through first
    this.replay.draw();
  }
}

VIEWS.set("play", (host, data) => { host.play = new Play(host, data); });
