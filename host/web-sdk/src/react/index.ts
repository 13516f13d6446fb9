import { createContext, createElement, type ReactNode, useContext, useEffect, useState } from "react";
import { type Client, type Events, init, type Options } from "@nudge/web";

export type { Client, Options };

const Context = createContext<Client | null>(null);

/** Gives the SDK to the components below. Made once for a key and server, also in React's strict mode. */
export function NudgeProvider({ children, ...options }: Options & { children?: ReactNode }) {
  const [client] = useState(() => init(options));
  return createElement(Context.Provider, { value: client }, children);
}

/** The SDK of the provider above. */
export function useNudge(): Client {
  const client = useContext(Context);
  if (!client) throw new Error("useNudge is called outside of a NudgeProvider");
  return client;
}

/** Listens as long as the component is there. */
export function useNudgeEvent<K extends keyof Events>(name: K, listener: (value: Events[K]) => void): void {
  const client = useNudge();
  useEffect(() => client.on(name, listener), [client, name, listener]);
}
