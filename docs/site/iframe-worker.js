/* Lets the site search itself when it is opened as files, from which browsers start no worker: the
   worker's script runs in a hidden frame of the page instead. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((done) => {
        window.addEventListener("load", () => document.body.append(frame));
        if (document.readyState === "complete") document.body.append(frame);
        frame.onload = () => {
          if (frame.started) return;
          frame.started = true;
          const inside = frame.contentWindow;
          const load = (source) => new Promise((loaded, failed) => {
            const script = inside.document.createElement("script");
            Object.assign(script, { src: source, onload: loaded, onerror: failed });
            inside.document.head.append(script);
          });
          inside.importScripts = (...sources) => sources.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          load(url).then(() => done(inside));
        };
      });
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
