// Microphone -> Web Audio -> speaker, by one of three engines. Where the page itself touches every block it marks when it
// had it and when it handed it on; a worklet passes sound on in the audio thread, which has no clock to mark with.

import { onset } from "./rig-marks.js";

const AUDIBLE = 0.01; // a block whose largest sample is under this carries no stimulus worth a mark of its peak

function marker(marks, active) {
  let seq = 0;
  return (samples, captured, played) => {
    if (!active) return;
    marks.mark(seq, "t_capture", captured);
    marks.mark(seq, "t_first_play", played);
    const { peak, peakAt } = onset(samples);
    if (peak >= AUDIBLE) marks.peak(seq, peak, peakAt);
    seq += 1;
  };
}

async function worklet(context, source) {
  await context.audioWorklet.addModule("processors.js");
  const node = new AudioWorkletNode(context, "pass", { outputChannelCount: [1] });
  source.connect(node).connect(context.destination);
  return () => ({});
}

function scriptProcessor(context, source, { block }, mark) {
  const node = context.createScriptProcessor(block, 1, 1);
  node.onaudioprocess = ({ inputBuffer, outputBuffer }) => {
    const captured = performance.now();
    const samples = inputBuffer.getChannelData(0);
    outputBuffer.getChannelData(0).set(samples);
    mark(samples, captured, performance.now());
  };
  source.connect(node).connect(context.destination);
  globalThis.keep = node; // one that nobody holds may be collected, and falls silent
  return () => ({});
}

async function buffers(context, source, { block, lead }, mark) {
  await context.audioWorklet.addModule("processors.js");
  const node = new AudioWorkletNode(context, "frames", { numberOfOutputs: 0, processorOptions: { size: block } });
  let next = 0;
  let late = 0;
  node.port.onmessage = ({ data }) => {
    const captured = performance.now();
    const buffer = new AudioBuffer({ length: data.length, numberOfChannels: 1, sampleRate: context.sampleRate });
    buffer.copyToChannel(data, 0);
    const player = new AudioBufferSourceNode(context, { buffer });
    player.connect(context.destination);
    if (next < context.currentTime) {
      late += 1; // also the first one
      next = context.currentTime + lead;
    }
    player.start(next);
    const played = performance.now();
    next += buffer.duration;
    mark(data, captured, played);
  };
  source.connect(node);
  return () => ({ restarts: Math.max(0, late - 1), queued_s: Math.max(0, next - context.currentTime) });
}

const ENGINES = { worklet, "script-processor": scriptProcessor, buffers };

export async function start(settings, stream, marks, fail) {
  const context = new AudioContext(settings.context);
  context.addEventListener("error", () => fail(new Error("the audio device has failed")));
  if (settings.block) marks.header.frame_ms = (1000 * settings.block) / context.sampleRate;
  marks.header.rate_hz = context.sampleRate;
  const source = context.createMediaStreamSource(stream);
  const mark = marker(marks, settings.marks);
  const observe = await ENGINES[settings.engine](context, source, settings, mark);
  await context.resume();
  const from = context.currentTime;
  while (context.currentTime < from + 0.3) await new Promise((done) => setTimeout(done, 20));
  const config = {
    engine: settings.engine,
    block: settings.block,
    lead: settings.lead,
    latencyHint: settings.context.latencyHint ?? null,
    contextSampleRate: context.sampleRate,
  };
  return { context, config, observe };
}
