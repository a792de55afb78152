import{d as a,e as b}from"./chunk-J52BRMRM.js";import"./chunk-ANPIOPAU.js";export{a as Compare,b as Parallel};
