// Browsers start no worker for a page that was opened from disk: there the search runs in a hidden frame.
if (location.protocol === "file:") {
  self.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = () => {}; // stemmers of other languages: English has its own
      const script = frame.contentDocument.createElement("script");
      script.src = address;
      this.loaded = new Promise((done) => { script.onload = done; });
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
  };
}
