// What both pages share: settings in, sound on, then once a second what the browser says of itself, as marks and as a
// report to the server. A page module exports `start(settings, stream, marks)`, which resolves once sound runs, to
// { context, config, observe }: the AudioContext or null, what was granted, and a function that looks each second.

import { Marks } from "./rig-marks.js";

const EVERY_MS = 1000;

async function post(name, body) {
  const answer = await fetch(name, { method: "POST", body });
  if (!answer.ok) throw new Error(`the server answers ${name} with ${answer.status}`);
}

function report(facts) {
  return post("report", JSON.stringify(facts));
}

let over = false;

function fail(error) {
  if (over) return;
  over = true;
  report({ state: "failed", kind: error.kind ?? error.name ?? "Error", what: `${error.name ?? "Error"}: ${error.message ?? error}` });
}

function because(kind, message) {
  return Object.assign(new Error(message), { kind });
}

async function microphone(constraints) {
  // Without a speaker Chromium plays into nothing and says that all is well.
  const devices = await navigator.mediaDevices.enumerateDevices();
  if (!devices.some((device) => device.kind === "audiooutput")) throw because("NoSpeaker", "there is no speaker");
  const stream = await navigator.mediaDevices.getUserMedia({ audio: constraints });
  stream.getAudioTracks()[0].addEventListener("ended", () => fail(because("Ended", "the microphone has ended")));
  return stream;
}

function finite(value) {
  return Number.isFinite(value) ? value : null;
}

// Claims change slowly: written when they do, so that a long run does not write the same lines for hours.
function claimer(marks) {
  const last = new Map();
  return (name, seconds, source) => {
    if (last.get(name) === seconds) return;
    last.set(name, seconds);
    marks.claim(name, seconds, source);
  };
}

async function main() {
  const settings = await (await fetch("settings.json")).json();
  const { start } = await import(`./${settings.page}.js`);
  const stream = await microphone(settings.microphone);
  const track = stream.getAudioTracks()[0];
  const marks = new Marks({ context: "page", frameMs: undefined });
  const running = await start(settings, stream, marks, fail);
  const granted = track.getSettings();
  marks.config({
    ...running.config,
    page: settings.page,
    browser: navigator.userAgent,
    echoCancellation: granted.echoCancellation,
    noiseSuppression: granted.noiseSuppression,
    autoGainControl: granted.autoGainControl,
    trackSampleRate: granted.sampleRate,
  });
  const claim = claimer(marks);
  while (!over) {
    const context = running.context;
    claim("input_latency", granted.latency, "MediaTrackSettings.latency");
    if (context) {
      claim("base_latency", context.baseLatency, "AudioContext.baseLatency");
      claim("output_latency", context.outputLatency, "AudioContext.outputLatency");
    }
    const seen = await running.observe();
    if (settings.marks) {
      const lines = marks.take();
      if (lines) await post("marks", lines);
    } else {
      marks.items = [];
    }
    await report({
      state: "running",
      ...running.config,
      context_rate_hz: context ? context.sampleRate : null,
      track_rate_hz: finite(granted.sampleRate),
      input_latency_s: finite(granted.latency),
      base_latency_s: context ? finite(context.baseLatency) : null,
      output_latency_s: context ? finite(context.outputLatency) : null,
      ...seen,
    });
    await new Promise((done) => setTimeout(done, EVERY_MS));
  }
}

addEventListener("error", (event) => fail(event.error ?? because("Error", event.message)));
addEventListener("unhandledrejection", (event) => fail(event.reason));
main().catch(fail);
