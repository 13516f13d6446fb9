/**
 * What everything of ours looks like. The element in the page takes nothing from the page: its own rules are important,
 * and an important rule within a shadow root is stronger than any of the page's. Sizes are in `em`, of the size that the
 * person has set in the browser, so that the page's does not matter. Minified when the bundle is made.
 */
export const STYLES = `
:host{all:initial!important;display:block!important;position:absolute!important;font-family:inherit!important}
:host([inline]){position:static!important}
*,*::before,*::after{box-sizing:border-box}
.root{position:fixed;inset:auto;margin:0;font-size:medium;line-height:1.45;color:var(--text);background:var(--background);
--line:color-mix(in srgb,var(--text) 70%,var(--background));
width:24em;max-width:calc(100vw - 1em);max-height:calc(100dvh - 1em);overflow:auto;overscroll-behavior:contain;overflow-wrap:anywhere;
border:1px solid var(--line);border-radius:var(--radius);box-shadow:0 8px 32px rgba(0,0,0,.28);padding:1.25em;z-index:2147483647;text-align:start}
.root.inline{position:relative;width:auto;max-width:100%;max-height:none;box-shadow:none;z-index:auto}
.center,.modal{inset:0;margin:auto;height:fit-content}
.modal{width:32em}
.fullscreen{inset:0;width:100%;max-width:none;height:100%;max-height:none;border:0;border-radius:0;display:grid;place-content:safe center;justify-items:center}
.fullscreen>.content{max-width:40em}
.banner{inset:0 0 auto 0;width:100%;max-width:none;border-width:0 0 1px;border-radius:0}
.banner>.content{max-width:64em;margin:auto;display:flex;flex-wrap:wrap;gap:.5em 1.5em;align-items:center;padding-inline-end:2.5em}
.banner .actions{margin:0}
dialog::backdrop{background:rgba(0,0,0,.5)}
.fab{all:unset;box-sizing:border-box;display:block;position:fixed;width:auto;min-height:2.75em;padding:.6em 1.1em;background:var(--primary);color:var(--onPrimary);border:1px solid transparent;border-radius:2em;font-size:medium;font-weight:600;cursor:pointer;box-shadow:0 2px 10px rgba(0,0,0,.3);z-index:2147483646}
.bottom{bottom:1em}
.top{top:1em}
.left{left:1em}
.right{right:1em}
.layer{display:contents}
h2,p,fieldset,legend,ol,form{margin:0;padding:0;border:0;min-width:0}
[hidden]{display:none!important}
h2{font-size:1.15em;font-weight:650;line-height:1.3}
.root:focus,h2:focus,p:focus{outline:0}
.closeable h2{padding-inline-end:1.75em}
legend{float:none;width:100%}
.desc,.body{margin-top:.4em;white-space:pre-line}
.ends,.field label,.optional{font-size:.875em}
.optional{font-weight:400}
.control{margin-top:.9em;display:grid;gap:.5em}
.picture{display:block;max-width:100%;max-height:40vh;margin-bottom:.75em}
.banner .picture{max-height:3em;margin:0}
button,.link,.face,.option,.ranking li,.text{min-height:2.5em;border:1px solid var(--line);border-radius:calc(var(--radius)/2)}
button,.link{font:inherit;color:inherit;min-width:2.5em;padding:.4em 1em;background:transparent;cursor:pointer}
.primary{background:var(--primary);color:var(--onPrimary);border-color:transparent;font-weight:600}
.link{display:inline-block;justify-self:start;text-decoration:underline}
.icon{padding:.2em;flex:none}
[aria-disabled=true]{cursor:default;border-style:dashed}
.close{position:absolute;inset-block-start:.6em;inset-inline-end:.6em;border-color:transparent;min-height:2.25em;min-width:2.25em;padding:0}
.actions{display:flex;flex-wrap:wrap;gap:.5em;margin-top:1.1em}
.actions .primary{order:1;margin-inline-start:auto}
:is(button,a,input,textarea):focus-visible,.tile input:focus-visible+.face{outline:3px solid var(--text);outline-offset:2px}
.tile,.option{position:relative;cursor:pointer}
.tile{display:block}
.tile input{position:absolute;inset:0;width:100%;height:100%;margin:0;opacity:0;cursor:pointer}
.face{display:flex;align-items:center;justify-content:center;height:100%;padding:.25em;text-align:center}
.tile input:checked+.face{background:var(--primary);color:var(--onPrimary);border-color:var(--text);font-weight:700}
.tile input:focus-visible+.face{z-index:1}
.scale{display:grid;grid-template-columns:repeat(auto-fit,minmax(1.6em,1fr));gap:.2em}
.star,.emoji{grid-template-columns:repeat(auto-fit,minmax(1.9em,1fr))}
.scale .face{padding:0}
.star .face,.emoji .face{font-size:1.5em;min-height:1.7em}
.star .tile:has(~ .tile input:checked) .face{background:var(--primary);color:var(--onPrimary)}
.ends{display:flex;justify-content:space-between;gap:1em}
.option{display:flex;gap:.6em;align-items:center;padding:.45em .7em}
.option:has(:checked){box-shadow:inset 0 0 0 1px var(--text);font-weight:600}
.option:has(:focus-visible){outline:3px solid var(--text);outline-offset:2px}
.option input{flex:none;width:1.5em;height:1.5em;margin:0;accent-color:var(--primary)}
.option input:focus-visible{outline:0}
.pictures{grid-template-columns:repeat(auto-fill,minmax(7em,1fr))}
.options{display:grid;gap:.5em}
.pictures .option{flex-wrap:wrap;align-content:start}
.pictures img{width:100%;aspect-ratio:4/3;object-fit:cover;order:-1;border-radius:calc(var(--radius)/3)}
.ranking{list-style:none;display:grid;gap:.4em;counter-reset:place}
.ranking li{display:flex;gap:.4em;align-items:center;padding:.3em .3em .3em .7em;counter-increment:place}
.ranking li>span{flex:1}
.ranking li>span::before{content:counter(place) ". "}
.columns{display:flex;flex-wrap:wrap;gap:.25em;margin-top:.25em}
.columns .tile{flex:1 1 4em}
.text{font:inherit;color:inherit;background:var(--background);width:100%;padding:.45em .6em}
.text::placeholder{color:var(--line);opacity:1}
.text[aria-invalid]{border:2px solid}
textarea{resize:vertical}
.field label{display:block;margin-bottom:.2em}
.error{margin-top:.6em;padding-inline-start:.6em;border-inline-start:4px solid var(--text);font-weight:600}
.error:empty{display:none}
progress{display:block;width:100%;margin-bottom:1em;accent-color:var(--primary)}
.closeable progress,.closeable .count{width:calc(100% - 2.25em)}
.count{font-size:.875em;margin-bottom:.5em}
.sr{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media (max-width:30em){.root:not(.inline,.fullscreen,.banner,.modal,.center){inset-inline:.5em;width:auto}}
@media (forced-colors:active){.root,.fab{border:1px solid}.primary,.tile input:checked+.face,.star .tile:has(~ .tile input:checked) .face,.option:has(:checked){forced-color-adjust:none;background:Highlight;color:HighlightText;border-color:HighlightText}
:is(button,a,input,textarea):focus-visible,.tile input:focus-visible+.face,.option:has(:focus-visible){outline-color:Highlight}}
@media (prefers-reduced-motion:no-preference){.root:not(.inline){animation:in .18s ease-out}@keyframes in{from{opacity:0;translate:0 .5em}}}
`;
