import type { AckStatus, Instruction, Told } from "../surveys/host.js";

export type { AckStatus, Instruction };

/** Flat values, as properties of people have them. */
export type PropertyValue = string | number | boolean | null;

/** Whatever JSON can say. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json | undefined };

/** What an event says besides its name. */
export type EventProperties = { [key: string]: Json | undefined };

/** A fault that the SDK tells of. Nothing of it is thrown. */
export interface NudgeError {
  /**
   * The server's code, or one of the SDK's own: `storage_unavailable`, `network`, `invalid_properties`,
   * `consent_required`, `show_failed`.
   */
  code: string;
  message: string;
  status?: number;
  /** The event that was dropped, where one was. */
  eventId?: string;
  /** What could not be shown, where something could not. */
  instruction?: Instruction;
}

/** What `on` tells of, and with what. */
export interface Events {
  /** Something may be shown here; with `autoShow` it is. */
  instruction: Instruction;
  displayed: Told["displayed"];
  answered: Told["answered"];
  error: NudgeError;
}

/** Where something is shown. */
export interface Place {
  container?: Element | string;
}

/** How the SDK is set up. */
export interface Options {
  /** The app's public key. */
  writeKey: string;
  /** Where the server is; where the script came from unless said. */
  baseUrl?: string;
  /** `required`: nothing is stored, and nothing but session and consent asked for, until `consent()` is called. */
  consent?: "granted" | "required";
  /** Gets an identity token from the app's own backend, or null where nobody is signed in. */
  identity?: () => Promise<string | null>;
  /** The language of the person; the browser's unless said. */
  locale?: string;
  /** Whether instructions are shown by themselves (default true). */
  autoShow?: boolean;
  /** Where surveys with the presentation `inline` are shown. */
  container?: Element | string;
  /** Where the page's own origin serves the service worker of Web Push (default `/nudge/worker.js`). */
  workerUrl?: string;
}

/** What Web Push is at. */
export type PushState = "unsupported" | "default" | "denied" | "subscribed" | "unsubscribed";

/** Web Push. */
export interface Push {
  subscribe(): Promise<PushState>;
  unsubscribe(): Promise<PushState>;
  readonly state: PushState;
}

/** The SDK of a page. */
export interface Client {
  track(name: string, properties?: EventProperties): string;
  screen(name: string): string;
  identify(identityToken: string): void;
  reset(): void;
  consent(given: { analytics?: boolean; messaging?: boolean }): void;
  set(properties: { [key: string]: PropertyValue }): void;
  unset(keys: string[]): void;
  on<K extends keyof Events>(name: K, listener: (value: Events[K]) => void): () => void;
  present(instruction: Instruction, place?: Place): Promise<void>;
  startSurvey(surveyId: string, place?: Place): Promise<void>;
  readonly push: Push;
  flush(): Promise<void>;
}
