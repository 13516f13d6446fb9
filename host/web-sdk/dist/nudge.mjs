var o="0.1.0";export{o as version};
