import{d as a,e as b}from"./chunk-Y7ACSB5C.js";import"./chunk-FLHQXDQD.js";export{a as Compare,b as Parallel};
