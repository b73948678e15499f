// In the audio thread. `pass` hands the input on; `frames` gathers blocks of `size` frames and sends each to the page.

class Pass extends AudioWorkletProcessor {
  process([input], [output]) {
    if (input.length) output.forEach((channel, k) => channel.set(input[Math.min(k, input.length - 1)]));
    return true;
  }
}

class Frames extends AudioWorkletProcessor {
  constructor({ processorOptions: { size } }) {
    super();
    this.size = size;
    this.begin();
  }

  begin() {
    this.block = new Float32Array(this.size);
    this.filled = 0;
  }

  process([input]) {
    if (!input.length) return true;
    this.block.set(input[0], this.filled);
    this.filled += input[0].length;
    if (this.filled >= this.size) {
      this.port.postMessage(this.block, [this.block.buffer]);
      this.begin();
    }
    return true;
  }
}

registerProcessor("pass", Pass);
registerProcessor("frames", Frames);
