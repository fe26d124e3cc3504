// The curves of all runs: controls for all charts, and the charts.

VIEWS.set("curves", (host, data) => {
  const several = data.runs.length > 1;
  const shared = { hidden: new Set(), bands: true, smooth: 0 };
  const charts = data.charts.map((spec, number) => new Chart({ ...spec, number }, data.runs, shared));
  const stale = new Set(charts), near = new Set(); // charts to draw anew, and those in or near the window
  const draw = (wanted) => {
    for (const chart of wanted) if (stale.delete(chart)) chart.draw();
  };
  let waiting = false;
  const redraw = () => { // once a frame, however fast a slider moves, and what can be seen first
    charts.forEach((chart) => stale.add(chart));
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(near); });
  };

  const runs = data.runs.map((run, number) =>
    toggle([swatch(look(true, number, 0)), run.name], true, (on) => {
      if (on) shared.hidden.delete(number); else shared.hidden.add(number);
      redraw();
    }));
  const width = make("output", {}, say("none"));
  const slider = make("input", { type: "range", min: 0, max: 30, value: 0, "aria-label": say("smoothing"), on: {
    input: () => {
      const reach = Number(slider.value);
      shared.smooth = reach ? 2 * reach + 1 : 0;
      width.textContent = reach ? say("{n} points", { n: shared.smooth }) : say("none");
      redraw();
    },
  } });
  const bands = make("input", { type: "checkbox", on: {
    change: () => { shared.bands = bands.checked; redraw(); },
  } });
  bands.checked = true;
  host.append(
    several ? make("div", { class: "bar runs", role: "group", "aria-label": say("runs") }, ...runs) : "",
    make("div", { class: "bar" },
      make("label", {}, say("smoothing"), slider, width),
      make("label", {}, bands, say("bands")),
      make("span", { class: "small" }, say("Drag to zoom, double-click to see all."))),
    make("div", { class: "charts" }, ...charts.map((chart) => chart.element)));
  draw(charts);
  const watch = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      const chart = charts.find((one) => one.element === target);
      if (isIntersecting) near.add(chart); else near.delete(chart);
    }
    draw(near);
  }, { rootMargin: "200px" });
  charts.forEach((chart) => watch.observe(chart.element));
  window.addEventListener("beforeprint", () => { // two columns on paper, whatever the window is like
    charts.forEach((chart, number) => chart.draw(number ? 340 : 700));
  });
  window.addEventListener("afterprint", redraw);
  let wide = host.clientWidth;
  new ResizeObserver(() => {
    if (host.clientWidth === wide) return; // its height follows from what is drawn
    wide = host.clientWidth;
    redraw();
  }).observe(host);
});
