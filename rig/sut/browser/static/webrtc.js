// A call of a page to itself: microphone -> peer connection -> peer connection -> an audio element, or an AudioContext.

function connected(one, other) {
  one.addEventListener("icecandidate", ({ candidate }) => candidate && other.addIceCandidate(candidate));
  other.addEventListener("icecandidate", ({ candidate }) => candidate && one.addIceCandidate(candidate));
  return new Promise((done, fail) => {
    one.addEventListener("connectionstatechange", () => {
      if (one.connectionState === "connected") done();
      if (one.connectionState === "failed") fail(new Error("the peer connection has failed"));
    });
  });
}

// How long a packet is, the sender reads in the answer.
function withFrames(sdp, ptime) {
  if (ptime === null) return sdp;
  return sdp.replace(/a=rtpmap:\d+ opus.*\r\n/i, (line) => `${line}a=ptime:${ptime}\r\na=maxptime:${ptime}\r\n`);
}

async function play(stream, { player, context: options }) {
  // Also where an AudioContext plays it: without an element Chromium does not fetch what was received.
  const element = new Audio();
  element.srcObject = stream;
  element.muted = player === "context";
  await element.play();
  globalThis.keep = element;
  if (player === "element") return null;
  const context = new AudioContext(options);
  context.createMediaStreamSource(stream).connect(context.destination);
  await context.resume();
  return context;
}

async function inbound(receiver) {
  for (const each of (await receiver.getStats()).values()) if (each.type === "inbound-rtp") return each;
  return {};
}

async function outbound(sender) {
  for (const each of (await sender.getStats()).values()) if (each.type === "outbound-rtp") return each;
  return {};
}

export async function start(settings, stream, marks, fail) {
  const [here, there] = [new RTCPeerConnection(), new RTCPeerConnection()];
  const ready = connected(here, there);
  const received = new Promise((done) => there.addEventListener("track", done));
  const sender = here.addTrack(stream.getAudioTracks()[0], stream);
  const offer = await here.createOffer();
  await here.setLocalDescription(offer);
  await there.setRemoteDescription(offer);
  const { receiver, streams } = await received;
  if (settings.jitterBufferTarget !== null) receiver.jitterBufferTarget = settings.jitterBufferTarget;
  if (settings.playoutDelayHint !== null) receiver.playoutDelayHint = settings.playoutDelayHint;
  const answer = await there.createAnswer();
  await there.setLocalDescription(answer);
  await here.setRemoteDescription({ type: "answer", sdp: withFrames(answer.sdp, settings.ptime) });
  await ready;
  here.addEventListener("connectionstatechange", () => {
    if (["failed", "closed"].includes(here.connectionState)) fail(new Error("the peer connection has ended"));
  });
  const context = await play(streams[0], settings);
  while (!((await inbound(receiver)).jitterBufferEmittedCount > 0)) await new Promise((done) => setTimeout(done, 50));
  const config = {
    player: settings.player,
    ptime: settings.ptime,
    jitterBufferTarget: receiver.jitterBufferTarget ?? null,
    playoutDelayHint: receiver.playoutDelayHint ?? null,
    latencyHint: settings.context.latencyHint ?? null,
    contextSampleRate: context ? context.sampleRate : null,
  };
  let before = null;
  const observe = async () => {
    const [now, sent] = [await inbound(receiver), await outbound(sender)];
    marks.stats(now);
    // Of the last second: the totals since the start hide what the buffer does now.
    const emitted = before ? now.jitterBufferEmittedCount - before.now.jitterBufferEmittedCount : 0;
    const elapsed = before ? sent.timestamp - before.sent.timestamp : 0;
    const seen = {
      jitter_buffer_s: emitted > 0 ? (now.jitterBufferDelay - before.now.jitterBufferDelay) / emitted : null,
      packets_per_s: elapsed > 0 ? (1000 * (sent.packetsSent - before.sent.packetsSent)) / elapsed : null,
      concealed: now.concealedSamples ?? null,
    };
    before = { now, sent };
    return seen;
  };
  return { context, config, observe };
}
