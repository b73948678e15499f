// For a system under test in a browser or Node: marks, the times at which sound passed through its stages.
//
//   import { Marks } from "./rig-marks.js";
//   const marks = new Marks({ frameMs: 20, rateHz: 48000 });
//   marks.mark(seq, "t_capture");
//   ...
//   download(marks.take());            // or write it to a file: JSON lines, header first
//
// No dependency. A mark is two numbers and a name in an array; text is made when the lines are taken.

const UNIT = "ms";
const PIECE = 5000; // lines of one message

function text(item) {
  return Array.isArray(item) ? `{"seq":${item[0]},"${item[1]}":${item[2]}}` : JSON.stringify(item);
}

function identity() {
  const bytes = new Uint8Array(8);
  globalThis.crypto.getRandomValues(bytes);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Marks {
  constructor(options = {}) {
    this.most = options.mostWaiting ?? 100000;
    this.items = [];
    this.lost = 0;
    this.header = {
      marks: 1,
      session_id: options.sessionId ?? identity(),
      clock: "performance.now",
      unit: UNIT,
      // Two contexts of one page (a worker and its page) count from different origins: this tells them apart.
      origin: performance.timeOrigin,
    };
    if (options.context !== undefined) this.header.context = options.context;
    if (options.frameMs !== undefined) this.header.frame_ms = options.frameMs;
    if (options.rateHz !== undefined) this.header.rate_hz = options.rateHz;
    if (options.peakAtUMs !== undefined) this.header.peak_at_u = options.peakAtUMs;
    this.opened = false;
    this.onConfig = options.onConfig;
  }

  now() {
    return performance.now();
  }

  mark(seq, stage, t = performance.now()) {
    this.#keep(seq, stage, t);
  }

  peak(seq, peak, peakAt) {
    this.#keep({ seq, peak, ...(peakAt === undefined ? {} : { peak_at: peakAt }) });
  }

  interrupted(seq) {
    this.#keep({ seq, interrupted: true });
  }

  claim(name, seconds, source) {
    // Older browsers have no outputLatency: what is not reported is not written, and never becomes 0 or NaN.
    if (Number.isFinite(seconds)) this.#keep({ claim: name, value: seconds * 1000, source });
  }

  claimContext(context) {
    this.claim("base_latency", context.baseLatency, "AudioContext.baseLatency");
    this.claim("output_latency", context.outputLatency, "AudioContext.outputLatency");
  }

  config(settings) {
    this.#keep({ config: settings });
  }

  stats(report) {
    const { jitterBufferDelay, jitterBufferEmittedCount } = report;
    if (Number.isFinite(jitterBufferDelay) && Number.isFinite(jitterBufferEmittedCount)) {
      this.#keep({ stats: { jitterBufferDelay, jitterBufferEmittedCount }, t: performance.now() });
    }
  }

  event(name, t = performance.now()) {
    this.#keep({ event: name, t });
  }

  take() {
    const lines = this.opened ? [] : [JSON.stringify(this.header)];
    this.opened = true;
    if (this.lost) lines.push(JSON.stringify({ event: "marks_lost", n: this.lost }));
    this.lost = 0;
    for (const item of this.items) {
      lines.push(text(item));
    }
    this.items = [];
    return lines.length ? lines.join("\n") + "\n" : "";
  }

  // Posts what waits to the address of `rig measure --marks listen`, after a clock exchange. Call it a few times a second,
  // not from where sound is made. Resolves to false where nothing answers; what was not sent waits on.
  async send(address) {
    if (this.sending) return true;
    this.sending = true;
    const post = async (path, body) => {
      const url = new URL(address);
      if (path) url.pathname = path;
      const answer = await fetch(url, { method: "POST", body, signal: AbortSignal.timeout(2000) });
      return answer.json();
    };
    let items = [];
    try {
      const sent = performance.now();
      const answer = await post("/ping", JSON.stringify({ ping: sent, unit: UNIT }));
      const received = performance.now();
      if (answer.pong) this.#keep({ sync: [...answer.pong, received] });
      await this.#configure(answer, post);
      while (this.items.length || this.lost) {
        items = this.items.splice(0, PIECE);
        const lines = [JSON.stringify(this.header)];
        if (this.lost) lines.push(JSON.stringify({ event: "marks_lost", n: this.lost }));
        for (const item of items) lines.push(text(item));
        const lost = this.lost;
        const said = await post("", lines.join("\n") + "\n");
        this.lost -= lost;
        items = [];
        await this.#configure(said, post);
      }
      this.opened = true;
      return true;
    } catch {
      this.items = items.concat(this.items);
      return false;
    } finally {
      this.sending = false;
    }
  }

  // Settings that an experiment asks for came with an answer: they are taken, or it is said why not.
  async #configure({ config, ack }, post) {
    if (!config || !this.onConfig || ack === this.answered) return;
    this.answered = ack;
    let said;
    try {
      const taken = await this.onConfig(config);
      this.config(taken);
      said = { ack, config: taken };
    } catch (error) {
      said = { ack, why: String(error?.message ?? error) };
    }
    await post("/ack", JSON.stringify(said));
  }

  #keep(item, stage, t) {
    // The oldest half goes at once: dropping one by one would move the whole array for each mark.
    if (this.items.length >= this.most) {
      const gone = Math.ceil(this.most / 2);
      this.items.splice(0, gone);
      this.lost += gone;
    }
    this.items.push(stage === undefined ? item : [item, stage, t]);
  }
}

export function onset(samples) {
  let peak = 0;
  for (let k = 0; k < samples.length; k += 1) peak = Math.max(peak, Math.abs(samples[k]));
  for (let k = 0; k < samples.length; k += 1) {
    if (Math.abs(samples[k]) >= 0.5 * peak) return { peak, peakAt: k };
  }
  throw new Error("a frame has samples");
}
