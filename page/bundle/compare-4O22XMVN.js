import{d as a,e as b}from"./chunk-STWAYOTC.js";import"./chunk-UCZYFPV7.js";export{a as Compare,b as Parallel};
