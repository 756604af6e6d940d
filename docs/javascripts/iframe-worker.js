// A browser starts no worker for a page that is opened as a file, and the theme searches in a worker.
// There the same script runs in a hidden frame instead.
if (location.protocol === "file:") {
  // Later, as messages of a worker arrive: the theme may not be listening yet.
  const deliver = (target, data) => setTimeout(() => target.dispatchEvent(new MessageEvent("message", { data })))

  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      this.waiting = []
      document.body.appendChild(frame)
      const inside = frame.contentWindow
      inside.document.open()
      inside.document.write("<!doctype html><html><body></body></html>")
      inside.document.close()
      inside.postMessage = (data) => deliver(this, data)
      const script = inside.document.createElement("script")
      script.src = new URL(url, location.href).href
      script.onload = () => {
        this.inside = inside
        this.waiting.forEach((data) => this.postMessage(data))
      }
      inside.document.body.appendChild(script)
    }

    postMessage(data) {
      if (this.inside) deliver(this.inside, data)
      else this.waiting.push(data)
    }
  }
  window.Worker = window.IFrameWorker
}
