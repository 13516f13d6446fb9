import type { AckStatus, Host, Instruction } from "./host.js";

/** Notes what became of an instruction, where it is one of the server's. */
export function acknowledge(host: Host, instruction: Instruction, status: AckStatus, actionId?: string): void {
  if (!instruction.local) host.acknowledge(instruction, status, actionId);
}
