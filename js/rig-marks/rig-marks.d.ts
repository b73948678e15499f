export type Stage =
  | "t_capture"
  | "t_encode_done"
  | "t_send_done"
  | "t_first_packet"
  | "t_first_play";

export interface MarksOptions {
  /** Tells two starts of the system apart; drawn where none is given. */
  sessionId?: string;
  /** Length of a frame in milliseconds. */
  frameMs?: number;
  /** Sample rate of the frames; needed for `peakAt`. */
  rateHz?: number;
  /** How well `peakAt` finds the first sample of a sound: standard uncertainty in milliseconds. */
  peakAtUMs?: number;
  /** Which context stamps, for example "page" or "worklet-port"; each has its own Marks. */
  context?: string;
  /**
   * Takes settings that an experiment asks for and returns them as they are now; throws where they cannot be taken.
   * Called from `send`.
   */
  onConfig?: (settings: Record<string, unknown>) => Record<string, unknown> | Promise<Record<string, unknown>>;
  /** Lines kept while nobody takes them; beyond it the oldest are dropped and counted. Default 100000. */
  mostWaiting?: number;
}

export declare class Marks {
  constructor(options?: MarksOptions);
  /** The clock of the marks: milliseconds of `performance.now()`. */
  now(): number;
  /** Stamps a stage of frame `seq`, now or at `t` of `now()`. */
  mark(seq: number, stage: Stage, t?: number): void;
  /** How loud frame `seq` is, and at which of its samples a sound begins. */
  peak(seq: number, peak: number, peakAt?: number): void;
  /** Frame `seq` was cut off. */
  interrupted(seq: number): void;
  /** `input_latency`, `output_latency` or `base_latency` in seconds, as Web Audio gives them; undefined is left out. */
  claim(name: string, seconds: number | undefined, source: string): void;
  /** Claims of an AudioContext: baseLatency and outputLatency, as far as it has them. */
  claimContext(context: { baseLatency?: number; outputLatency?: number }): void;
  /** Settings of the system that a later comparison must know. */
  config(settings: Record<string, unknown>): void;
  /** Running totals of an inbound-rtp report of getStats. */
  stats(report: { jitterBufferDelay?: number; jitterBufferEmittedCount?: number }): void;
  event(name: string, t?: number): void;
  /** The lines that wait, each ending in a newline, header first; afterwards none wait. */
  take(): string;
  /** Posts what waits, and a clock exchange, to the address that `rig measure --marks listen` prints. False: no answer. */
  send(address: string): Promise<boolean>;
}

/** Largest magnitude of a frame, and the index of the first sample that reaches half of it. */
export declare function onset(samples: ArrayLike<number>): { peak: number; peakAt: number };
