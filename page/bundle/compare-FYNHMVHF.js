import{d as a,e as b}from"./chunk-2FHWAIB6.js";import"./chunk-XTJBCMFV.js";export{a as Compare,b as Parallel};
