// Whose plugins a page is about: the app's, or the server's, which operators look after by the same routes.
import { can, inApp, link, route } from "../../lib/index.js";

/** Whether the page is about the server's plugins. */
export const ofServer = () => route.value.path.startsWith("/operator/") || route.value.path == "/operator";

/** The path of a route of plugins. @param {string} path `/plugins` */
export const ofOwner = (path) => (ofServer() ? `/v1/operator${path}` : inApp(path));

/** Whether one may change them. */
export const manages = () => can(ofServer() ? "operator" : "admin");

/** The scope of the owner's own plugins. */
export const ownScope = () => (ofServer() ? "server" : "app");

/** The address of the list of all. */
export const listPage = () => (ofServer() ? link("/operator") : link("/apps/:appId/plugins", route.value.params));

/** The address of a plugin's page. @param {string} name */
export const pluginPage = (name) => link(ofServer() ? "/operator/plugins/:name" : "/apps/:appId/plugins/:name", { ...route.value.params, name });
