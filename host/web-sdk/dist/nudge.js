"use strict";(()=>{var r=Object.defineProperty;var p=(t,e)=>{for(var s in e)r(t,s,{get:e[s],enumerable:!0})};var o={};p(o,{version:()=>i});var i="0.1.0";Object.assign(window,{Nudge:o});})();
